module github.com/FZambia/sentinel

go 1.19
