module github.com/mna/redisc

go 1.19
