module unladen/bench/precision/go

go 1.24
