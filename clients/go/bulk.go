package weir

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const textLines, textBytes = 1000, 128 * 1024 // of one text of a bulk

var noSum = strings.Repeat("0", 16)

// Rows gives the rows of a bulk one by one, and io.EOF behind the last one.
type Rows func() (any, error)

// Slice gives the elements of a slice.
func Slice[T any](rows []T) Rows {
	return func() (any, error) {
		if len(rows) == 0 {
			return nil, io.EOF
		}
		row := rows[0]
		rows = rows[1:]
		return row, nil
	}
}

// Chan gives what comes through a channel until it is closed.
func Chan[T any](rows <-chan T) Rows {
	return func() (any, error) {
		row, open := <-rows
		if !open {
			return nil, io.EOF
		}
		return row, nil
	}
}

// A BulkOption says more about a bulk.
type BulkOption func(*bulk)

// Batch names the batch that counts the jobs, by which the bulk is resumed.
func Batch(name string) BulkOption { return func(b *bulk) { b.head.Batch = name } }

// Then names the type of a job that follows when all have ended. It wants a Batch.
func Then(jobType string) BulkOption { return func(b *bulk) { b.then = jobType } }

// Queue names the queue of the jobs, and of the one that follows.
func Queue(name string) BulkOption { return func(b *bulk) { b.head.Queue = name } }

// A Bulk is what came of EnqueueAll.
type Bulk struct {
	Lines   int // of the input, those included that an earlier run had sent
	Jobs    int // enqueued by this call
	Resumed int // lines that an earlier run had sent
}

type bulkHead struct {
	Batch  string `json:"batch,omitempty"`
	Stream string `json:"stream,omitempty"`
	Type   string `json:"type,omitempty"`
	Queue  string `json:"queue,omitempty"`
	Offset int    `json:"offset"`
	Sum    string `json:"sum,omitempty"`
}

type bulkAnswer struct {
	Taken       bool
	Lines, Jobs int
	Sum         string
}

type bulk struct {
	head   bulkHead
	then   string
	rows   Rows
	number int    // of the row that was read last
	kept   string // a line that did not fit
}

// EnqueueAll enqueues a job of the type for each row, whose args it is, in constant memory. With an empty type each row is a Job,
// with members of the job and Queue alone. With a Batch: call it again with the same rows after any failure, also in another
// process, and each job is there once; in the end the batch is sealed.
func (c *Client) EnqueueAll(ctx context.Context, jobType string, rows Rows, options ...BulkOption) (Bulk, error) {
	b := &bulk{head: bulkHead{Type: jobType}, rows: rows}
	for _, option := range options {
		option(b)
	}
	if b.then != "" && b.head.Batch == "" {
		return Bulk{}, &InvalidError{Why: `wrong bulk: "then" wants a batch`, Member: "then"}
	}
	done := Bulk{}
	if b.head.Batch == "" {
		b.head.Stream = "stream." + makeID()
	} else if err := c.resume(ctx, b); err != nil {
		return done, err
	}
	done.Resumed, done.Lines = b.head.Offset, b.head.Offset
	for {
		lines, err := b.some()
		if err != nil {
			return done, err
		}
		if len(lines) == 0 {
			break
		}
		jobs, err := c.send(ctx, b, lines)
		if err != nil {
			return done, err
		}
		done.Lines = b.head.Offset
		done.Jobs += jobs
	}
	if b.head.Batch == "" {
		return done, nil
	}
	queue := b.head.Queue
	if b.then == "" {
		queue = ""
	}
	_, err := c.Seal(ctx, b.head.Batch, b.then, queue)
	return done, err
}

// resume passes over what an earlier run had sent.
func (c *Client) resume(ctx context.Context, b *bulk) error {
	b.head.Sum = noSum
	state, err := c.Batch(ctx, b.head.Batch)
	var missing *MissingError
	if errors.As(err, &missing) {
		return nil
	} else if err != nil {
		return err
	}
	for b.head.Offset < state.Lines {
		line, err := b.line()
		if err == io.EOF {
			return b.changed()
		} else if err != nil {
			return err
		}
		b.head.Offset, b.head.Sum = b.head.Offset+1, sumBehind(b.head.Sum, line)
	}
	if b.head.Offset > 0 && b.head.Sum != state.Sum {
		return b.changed()
	}
	return nil
}

func (b *bulk) changed() error {
	why := "batch " + b.head.Batch + ": the input is another one than that of which a part was sent; nothing more is sent"
	return &InvalidError{Why: why, Member: "batch"}
}

func sumBehind(sum, line string) string {
	digest := sha1.Sum([]byte(sum + line))
	return hex.EncodeToString(digest[:8])
}

func (b *bulk) line() (string, error) {
	row, err := b.rows()
	if err != nil {
		return "", err
	}
	b.number++
	if b.head.Type == "" {
		job, is := row.(Job)
		if !is {
			return "", &InvalidError{Why: fmt.Sprintf("line %d: without a type each row is a weir.Job, not %T", b.number, row), Line: b.number}
		}
		if row, err = job.document(); err != nil {
			return "", b.wrong(err)
		}
	}
	line, err := encode(row, "args")
	return string(line), b.wrong(err)
}

func (b *bulk) wrong(err error) error {
	var invalid *InvalidError
	if errors.As(err, &invalid) {
		return &InvalidError{fmt.Sprintf("line %d: %s", b.number, invalid.Why), invalid.Member, b.number}
	}
	return err
}

// some returns the next lines, as many as go into one text.
func (b *bulk) some() ([]string, error) {
	var lines []string
	size := 0
	for len(lines) < textLines {
		line := b.kept
		b.kept = ""
		if line == "" {
			var err error
			if line, err = b.line(); err == io.EOF {
				break
			} else if err != nil {
				return nil, err
			}
		}
		if size += len(line) + 1; len(lines) > 0 && size > textBytes {
			b.kept = line
			break
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// send sends a text and returns how many jobs it has become.
func (c *Client) send(ctx context.Context, b *bulk, lines []string) (int, error) {
	head, err := encode(b.head, "")
	if err != nil {
		return 0, err
	}
	var answer bulkAnswer
	name := b.head.Batch + b.head.Stream
	err = c.ask(ctx, "bulk", string(head)+"\n"+strings.Join(lines, "\n"), name, &answer)
	var invalid *InvalidError
	if errors.As(err, &invalid) && invalid.Line > 0 {
		line := b.head.Offset + invalid.Line
		return 0, &InvalidError{fmt.Sprintf("line %d: %s", line, invalid.Why), invalid.Member, line}
	} else if err != nil {
		return 0, err
	}
	jobs := answer.Jobs
	if !answer.Taken {
		jobs = len(lines)
		sum := b.head.Sum
		for _, line := range lines {
			sum = sumBehind(sum, line)
		}
		if answer.Lines != b.head.Offset+len(lines) || b.head.Batch != "" && answer.Sum != sum {
			why := fmt.Sprintf("%s: it has %d lines, not %d: somebody else sends it, or it was forgotten", name, answer.Lines, b.head.Offset)
			return 0, &ClosedError{Why: why}
		}
	}
	b.head.Offset = answer.Lines
	if b.head.Batch != "" {
		b.head.Sum = answer.Sum
	}
	return jobs, nil
}

// A BatchState says how far a batch is.
type BatchState struct {
	Name      string `json:"batch"`
	State     string `json:"state"` // open, sealed, ended, cancelled
	Total     int    `json:"total"`
	Left      int    `json:"left"`
	Done      int    `json:"done"`
	Dead      int    `json:"dead"`
	Cancelled int    `json:"cancelled"`
	Failed    int    `json:"failed"` // attempts
	Lines     int    `json:"lines"`  // of its bulk, and the sum over them
	Sum       string `json:"sum"`
	Then      string `json:"then,omitempty"`
	CreatedAt Time   `json:"created_at"`
	SealedAt  Time   `json:"sealed_at"`
	EndedAt   Time   `json:"ended_at"`
}

// Batch says how far a batch is.
func (c *Client) Batch(ctx context.Context, name string) (BatchState, error) {
	return c.batch(ctx, batchDocument{Batch: name})
}

// Seal says that no more jobs come into the batch, as EnqueueAll does itself. then: the type of a job that follows when all have
// ended, queue: where; "": none, and the default one.
func (c *Client) Seal(ctx context.Context, name, then, queue string) (BatchState, error) {
	return c.batch(ctx, batchDocument{name, true, then, queue})
}

type batchDocument struct {
	Batch string `json:"batch"`
	Seal  bool   `json:"seal,omitempty"`
	Then  string `json:"then,omitempty"`
	Queue string `json:"queue,omitempty"`
}

func (c *Client) batch(ctx context.Context, document batchDocument) (BatchState, error) {
	var state BatchState
	text, err := json.Marshal(document)
	if err == nil {
		err = c.ask(ctx, "batch", string(text), document.Batch, &state)
	}
	return state, err
}
