package weir

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
)

const (
	reasonMost = 500   // characters of a reason; more would only fill the log
	resultMost = 65536 // bytes
)

// A JobRun is a job that a handler runs.
type JobRun struct {
	ID          string          `json:"id"`
	Type        string          `json:"type"`
	Args        json.RawMessage `json:"args"` // nil: it has none
	Key         string          `json:"key"`
	Cost        int             `json:"-"`
	Costs       Costs           `json:"-"`           // by name, where it says more than Cost
	Attempt     int             `json:"attempt"`     // 1 at the first
	EnqueuedAt  Time            `json:"enqueued_at"` // zero: another Redis client pushed it
	Traceparent string          `json:"traceparent"`
	Meta        json.RawMessage `json:"meta"`
	Document    json.RawMessage `json:"-"` // all of it

	spent  *int
	costs  Costs
	result json.RawMessage
}

// Decode reads the args. Those of a job without any leave the value as it is.
func (j *JobRun) Decode(value any) error {
	if len(j.Args) == 0 {
		return nil
	}
	return json.Unmarshal(j.Args, value)
}

// Spent tells the true cost, where it was not known before: the limits take, or give back, the difference.
func (j *JobRun) Spent(cost int) { j.spent = &cost }

// SpentCosts tells it by name, {"tokens": 1210}.
func (j *JobRun) SpentCosts(costs Costs) { j.costs = costs }

// Result leaves what came of the job, any JSON of at most 64 KiB: kept with it where its type is (weir worker --keep), when it is done. The
// last call counts. An *InvalidError: it is no JSON, or larger, and is left out.
func (j *JobRun) Result(value any) error {
	text, err := encode(value, "result")
	if err == nil && len(text) > resultMost {
		err = &InvalidError{Why: fmt.Sprintf("wrong result: %d bytes: at most %d are kept", len(text), resultMost), Member: "result"}
	}
	if err == nil {
		j.result = text
	}
	return err
}

// A Handler runs a job. nil: done. The context ends when the worker stops this process at once: a job in it was cancelled, or is
// over its time.
type Handler func(ctx context.Context, job *JobRun) error

// A Worker is a child of `weir worker --pipe`: handlers by type.
type Worker struct{ handlers map[string]Handler }

// NewWorker returns a worker without handlers.
func NewWorker() *Worker { return &Worker{map[string]Handler{}} }

// Handle makes the function the handler of that type.
func (w *Worker) Handle(jobType string, handler Handler) {
	if _, has := w.handlers[jobType]; has {
		panic("weir: " + jobType + " has a handler already")
	}
	w.handlers[jobType] = handler
}

// Handles says whether that type has a handler.
func (w *Worker) Handles(jobType string) bool { return w.handlers[jobType] != nil }

// An Answer is the line that ends a job.
type Answer struct {
	ID     string          `json:"id"`
	Status string          `json:"status"` // done, retry, dead, throttled
	After  json.Number     `json:"after,omitempty"`
	Reason string          `json:"reason,omitempty"`
	Cost   *int            `json:"cost,omitempty"`
	Spent  Costs           `json:"spent,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// RunOne runs the job of a line here and now.
func (w *Worker) RunOne(ctx context.Context, line []byte) (Answer, error) {
	job := &JobRun{Attempt: 1, Document: line}
	if err := json.Unmarshal(line, job); err != nil {
		return Answer{}, fmt.Errorf("a line that is no job: %w", err)
	}
	job.readCost(line)
	return answerTo(job, w.try(ctx, job)), nil
}

// readCost reads a number, or an object of numbers by name.
func (j *JobRun) readCost(line []byte) {
	var said struct {
		Cost json.RawMessage `json:"cost"`
	}
	if json.Unmarshal(line, &said) == nil && len(said.Cost) > 0 && json.Unmarshal(said.Cost, &j.Cost) != nil {
		_ = json.Unmarshal(said.Cost, &j.Costs)
		j.Cost = j.Costs["plain"]
	}
}

func (w *Worker) try(ctx context.Context, job *JobRun) (err error) {
	handler := w.handlers[job.Type]
	if handler == nil {
		return fmt.Errorf("this program has no handler for %s", job.Type)
	}
	defer func() {
		if failure := recover(); failure != nil {
			fmt.Fprintf(os.Stderr, "job %s: panic: %v\n%s", job.ID, failure, debug.Stack())
			err = fmt.Errorf("panic: %v", failure)
		}
	}()
	return handler(ctx, job)
}

func answerTo(job *JobRun, err error) Answer {
	answer := Answer{ID: job.ID, Status: "done", Cost: job.spent, Spent: job.costs}
	var end *outcome
	var denied *DeniedError
	switch {
	case err == nil:
		answer.Result = job.result
		return answer
	case errors.As(err, &end):
		answer.Status, answer.Reason = end.status, end.reason
		if end.after != nil {
			answer.After = seconds(end.after.Seconds())
		}
	case errors.As(err, &denied) && !denied.Never:
		answer.Status, answer.Reason, answer.After = "retry", err.Error(), seconds(denied.RetryAfter.Seconds())
	default:
		answer.Status, answer.Reason = "retry", err.Error()
	}
	if text := []rune(answer.Reason); len(text) > reasonMost {
		answer.Reason = string(text[:reasonMost])
	}
	return answer
}

// Run runs jobs as the child of weir worker --pipe 'TYPE=PROGRAM' --in-flight N, each in a goroutine of its own, until standard
// input ends. TERM, and the end of ctx, end the contexts of the jobs, and no more are read. Then those that were read are finished.
// What anybody prints meanwhile goes to standard error, the worker's log.
func (w *Worker) Run(ctx context.Context) error {
	in, out, err := takeStandard()
	if err != nil {
		return err
	}
	defer out.Close()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	var mutex sync.Mutex
	write := func(line []byte) error {
		mutex.Lock()
		defer mutex.Unlock()
		_, err := out.Write(line)
		return err
	}
	if err := write([]byte("\n")); err != nil { // ends what was printed before, without a newline
		return err
	}
	lines, failed := make(chan []byte), make(chan error, 1)
	go func() {
		failed <- readLines(ctx, in, lines)
		close(lines)
	}()
	var running sync.WaitGroup
	for open := true; open; {
		var line []byte
		select {
		case <-ctx.Done():
			open = false
			continue
		case line, open = <-lines:
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		running.Add(1)
		go func() {
			defer running.Done()
			answer, err := w.RunOne(ctx, line)
			var text []byte
			if err == nil {
				text, err = encode(answer, "")
			}
			if err == nil {
				err = write(append(text, '\n'))
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "weir:", err)
			}
		}()
	}
	running.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return <-failed
}

func readLines(ctx context.Context, in io.Reader, lines chan<- []byte) error {
	reader := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := reader.ReadBytes('\n')
		if err == io.EOF {
			return nil // without its newline it is the beginning of a job
		} else if err != nil {
			return err
		}
		select {
		case lines <- line:
		case <-ctx.Done():
			return nil
		}
	}
}

// takeStandard keeps the descriptors of the worker from programs that handlers start. Others find the log, and an empty input.
func takeStandard() (in, out *os.File, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	var kept [2]int
	for i := range kept {
		if kept[i], err = syscall.Dup(i); err != nil {
			return nil, nil, fmt.Errorf("no standard input and output of a worker: %w", err)
		}
		syscall.CloseOnExec(kept[i])
	}
	nothing, err := syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	defer syscall.Close(nothing)
	if err := duplicate(nothing, 0); err != nil {
		return nil, nil, err
	}
	if err := duplicate(2, 1); err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(kept[0]), "jobs"), os.NewFile(uintptr(kept[1]), "answers"), nil
}
