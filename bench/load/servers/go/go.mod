module unladen/bench/load/servers/go

go 1.24
