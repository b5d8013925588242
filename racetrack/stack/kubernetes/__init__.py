"""Runtime that runs services as pods of a Kubernetes cluster."""
