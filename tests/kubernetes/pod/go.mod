module racetrack/kubernetes/pod

go 1.24.0
