module unladen/scripts/cluster/pod

go 1.24
