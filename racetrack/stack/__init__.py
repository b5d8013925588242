"""The services of a run, as containers or plain processes, behind one `Stack` contract."""
