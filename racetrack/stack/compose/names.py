"""Labels by which the containers of a compose project are found."""

PROJECT = "com.docker.compose.project"
SERVICE = "com.docker.compose.service"
