// What the story's workers run: clients/tests/README.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"weir"
)

type args struct {
	Do      string
	Seconds float64
	Value   any
}

func note(job *weir.JobRun, ended bool) {
	line := map[string]any{"id": job.ID, "type": job.Type, "args": job.Args, "attempt": job.Attempt, "pid": os.Getpid()}
	if ended {
		line["ended"] = true
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	log, err := os.OpenFile(os.Getenv("STAGE_LOG"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		panic(err)
	}
	defer log.Close()
	if _, err := log.Write(append(text, '\n')); err != nil {
		panic(err)
	}
}

func story(ctx context.Context, job *weir.JobRun) error {
	var told args
	if err := job.Decode(&told); err != nil {
		return err
	}
	seen, err := os.OpenFile(os.Getenv("STAGE_LOG")+"."+job.ID, os.O_CREATE|os.O_EXCL, 0o666)
	first := err == nil
	if first {
		seen.Close()
	}
	note(job, false)
	switch {
	case told.Do == "print":
		fmt.Println("a stray line")
		fmt.Print("a stray end")
		echo := exec.Command("echo", "from a program that it started")
		echo.Stdout = os.Stdout
		return echo.Run()
	case told.Do == "retry" && first:
		return weir.Retry(200*time.Millisecond, "not yet")
	case told.Do == "kill" && first:
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case told.Do == "fail":
		return errors.New("a plain failure")
	case told.Do == "dead":
		return fmt.Errorf("sms: %w", weir.Dead("no such number"))
	case told.Do == "throttled" && first:
		return weir.Throttled(300 * time.Millisecond)
	case told.Do == "spent":
		job.Spent(3)
	case told.Do == "result":
		if told.Value == nil {
			told.Value = strings.Repeat("x", 70000)
		}
		if err := job.Result(told.Value); err != nil {
			fmt.Println(err)
		}
	case told.Do == "slow":
		time.Sleep(time.Duration(told.Seconds * float64(time.Second)))
		note(job, true)
	case told.Do == "until cancelled":
		<-ctx.Done()
		note(job, true)
	}
	return nil
}

func many(_ context.Context, job *weir.JobRun) error {
	note(job, false)
	return nil
}

func main() {
	w := weir.NewWorker()
	w.Handle("story", story)
	w.Handle("many", many)
	w.Handle("report", many)
	if err := w.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
