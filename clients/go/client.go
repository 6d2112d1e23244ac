// Package weir enqueues jobs of Weir, runs them, and takes slots of its limits, by protocol 1 (doc/protocol.md of Weir).
package weir

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// A lost call is asked again for giveUp, well within the minute for which ids made here are remembered.
const giveUp = 15 * time.Second

// A Client speaks to one Weir, for any number of goroutines.
type Client struct {
	carrier carrier
	clock   clock
	denials denials
}

type clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// New returns a client over a connection of yours: weir.New(weir.Pool(pool)), for the namespace $WEIR_NAMESPACE, else weir.
// A Doer that has Now and Sleep besides is the client's clock too, as weirtest is.
func New(doer Doer) *Client {
	c := &Client{carrier: newRedisCarrier(doer), clock: systemClock{}}
	if own, has := doer.(clock); has {
		c.clock = own
	}
	return c
}

// Open returns a client to an address, which connects at its first call: redis://, rediss://, unix://PATH, the path of a socket,
// or that of weir serve, http:// or https://, whose token is $WEIR_TOKEN. "": $REDIS_URL, or else redis://127.0.0.1:6379.
func Open(address string) (*Client, error) { return OpenToken(address, os.Getenv("WEIR_TOKEN")) }

// OpenToken is Open with a token for weir serve.
func OpenToken(address, token string) (*Client, error) {
	if address == "" {
		address = os.Getenv("REDIS_URL")
	}
	if address == "" {
		address = "redis://127.0.0.1:6379"
	}
	if strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://") {
		return &Client{carrier: newHTTPCarrier(address, token), clock: systemClock{}}, nil
	}
	doer, err := open(address)
	if err != nil {
		return nil, err
	}
	return New(doer), nil
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Call carries a document of the protocol as it is, once, and returns the answer as it came. It is for what a capability that
// About lists adds to the verbs.
func (c *Client) Call(ctx context.Context, verb, document string) (string, error) {
	reply, err := c.carrier.call(ctx, verb, document)
	var lost *lostError
	if errors.As(err, &lost) {
		err = &UnknownError{Err: lost.err}
	}
	return string(reply), err
}

// ask asks, asks again when the answer was lost, and reads the answer. name: what an unknown outcome is told by.
func (c *Client) ask(ctx context.Context, verb, text, name string, answer any) error {
	begin, pause := time.Now(), 50*time.Millisecond
	var lost *lostError
	for {
		reply, err := c.carrier.call(ctx, verb, text)
		if err == nil {
			err = readAnswer(reply, answer)
			var missing *MissingError
			if lost != nil && verb == "end" && errors.As(err, &missing) {
				return nil // ended by the call whose answer was lost
			}
			return err
		}
		var unreachable *UnreachableError
		if !errors.As(err, &lost) && (lost == nil || !errors.As(err, &unreachable)) {
			return err
		}
		if ctx.Err() != nil {
			return &UnknownError{name, ctx.Err()}
		}
		if time.Since(begin) > giveUp {
			return &UnknownError{name, lost.err}
		}
		if err := (systemClock{}).Sleep(ctx, pause); err != nil {
			return &UnknownError{name, err}
		}
		if pause *= 2; pause > time.Second {
			pause = time.Second
		}
	}
}

// readAnswer reads the answer, or returns what it refuses.
func readAnswer(text []byte, answer any) error {
	var refusal struct {
		Refused, Why, Member string
		Line                 int
	}
	err := json.Unmarshal(text, &refusal)
	if err == nil && refusal.Refused == "" {
		err = json.Unmarshal(text, answer)
	}
	if err != nil {
		return &UnreachableError{"the answer is not of Weir's protocol: " + strconv.Quote(string(text[:min(len(text), 80)])), err}
	}
	switch refusal.Refused {
	case "":
		return nil
	case "invalid":
		return &InvalidError{refusal.Why, refusal.Member, refusal.Line}
	case "missing":
		return &MissingError{refusal.Why, refusal.Member}
	case "closed":
		return &ClosedError{refusal.Why, refusal.Member}
	case "rights":
		return &RefusedError{refusal.Why}
	}
	return &UnreachableError{Why: refusal.Why}
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

// encode writes JSON as Weir takes it, on one line.
func encode(value any, member string) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, &InvalidError{Why: "not JSON: " + err.Error(), Member: member}
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

func seconds(s float64) json.Number { return json.Number(strconv.FormatFloat(s, 'f', -1, 64)) }

func span(d time.Duration) json.Number {
	if d == 0 {
		return ""
	}
	return seconds(d.Seconds())
}

func duration(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds*1e6)) * time.Microsecond
}

// A Time is seconds since 1970 in JSON, and null when it is zero.
type Time struct{ time.Time }

// UnmarshalJSON reads seconds since 1970.
func (t *Time) UnmarshalJSON(text []byte) error {
	var s float64
	if err := json.Unmarshal(text, &s); err != nil || string(text) == "null" {
		return err
	}
	t.Time = time.UnixMicro(int64(math.Round(s * 1e6)))
	return nil
}

// MarshalJSON writes seconds since 1970.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return []byte(seconds(float64(t.UnixMicro()) / 1e6)), nil
}

// Costs are slots by name, {"tokens": 900}, for rules with of=tokens; "plain" are those of other rules.
type Costs map[string]int

// A Job is one to be enqueued. What is left zero is not said: the bounds and defaults of each are in doc/jobs.md of Weir.
type Job struct {
	Type             string
	Args             any // written by encoding/json; a json.RawMessage stays as it is but for blanks
	ID               string
	Queue            string
	Key              string
	Cost             int
	Costs            Costs // by name, instead of Cost
	Delay            time.Duration
	At               time.Time
	Unique           string        // while a job holds this key no other with it comes in
	UniqueFor        time.Duration // so long it is held; else until the job ends
	UniqueUntilStart bool          // until the job starts
	Batch            string
	Remember         time.Duration // so long the ID is known; whole seconds
	Timeout          time.Duration
	MaxAttempts      int
	Traceparent      string
	Meta             any
}

// Enqueued says what came of a job.
type Enqueued struct {
	ID     string
	New    bool // it was enqueued now, and its ID was not known before
	Locked bool // ID is of another job, which holds the unique key
}

// jobDocument has the members in the order that costs Redis least.
type jobDocument struct {
	Remember    json.Number     `json:"remember,omitempty"`
	Queue       string          `json:"queue,omitempty"`
	In          json.Number     `json:"in,omitempty"`
	At          json.Number     `json:"at,omitempty"`
	Unique      string          `json:"unique,omitempty"`
	UniqueUntil any             `json:"unique_until,omitempty"`
	Batch       string          `json:"batch,omitempty"`
	ID          string          `json:"id,omitempty"`
	Type        string          `json:"type"`
	Key         string          `json:"key,omitempty"`
	Cost        any             `json:"cost,omitempty"`
	Args        json.RawMessage `json:"args,omitempty"`
	MaxAttempts int             `json:"max_attempts,omitempty"`
	Timeout     json.Number     `json:"timeout,omitempty"`
	Traceparent string          `json:"traceparent,omitempty"`
	Meta        json.RawMessage `json:"meta,omitempty"`
}

func (j Job) document() (*jobDocument, error) {
	d := &jobDocument{
		Remember: span(j.Remember), Queue: j.Queue, In: span(j.Delay), Unique: j.Unique, Batch: j.Batch, ID: j.ID, Type: j.Type, Key: j.Key,
		MaxAttempts: j.MaxAttempts, Timeout: span(j.Timeout), Traceparent: j.Traceparent,
	}
	if j.Costs != nil {
		d.Cost = j.Costs
	} else if j.Cost != 0 {
		d.Cost = j.Cost
	}
	if !j.At.IsZero() {
		d.At = seconds(float64(j.At.UnixMicro()) / 1e6)
	}
	switch {
	case j.UniqueFor != 0 && j.UniqueUntilStart:
		return nil, &InvalidError{Why: "wrong job: UniqueFor or UniqueUntilStart, not both", Member: "unique_until"}
	case j.UniqueFor != 0:
		d.UniqueUntil = span(j.UniqueFor)
	case j.UniqueUntilStart:
		d.UniqueUntil = "start"
	}
	var err error
	if j.Args != nil {
		if d.Args, err = encode(j.Args, "args"); err != nil {
			return nil, err
		}
	}
	if j.Meta != nil {
		if d.Meta, err = encode(j.Meta, "meta"); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Enqueue enqueues one job. It arrives once, also over a connection that breaks: it is asked again for 15 seconds.
func (c *Client) Enqueue(ctx context.Context, job Job) (Enqueued, error) {
	made := job.ID == ""
	if made {
		job.ID = makeID()
		if job.Remember == 0 {
			job.Remember = time.Minute
		}
	}
	document, err := job.document()
	if err != nil {
		return Enqueued{}, err
	}
	text, err := encode(document, "")
	if err != nil {
		return Enqueued{}, err
	}
	var answer Enqueued
	if err := c.ask(ctx, "enqueue", string(text), job.ID, &answer); err != nil {
		return Enqueued{}, err
	}
	if made && !answer.Locked {
		answer.New = true // nobody else knows an id that was made here: an answer was lost, and the job is there
	}
	return answer, nil
}

func makeID() string {
	const letters = "abcdefghijklmnopqrstuvwxyz234567" // 32 of them, so that a byte picks each as often
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		panic("no random bytes: " + err.Error())
	}
	for i, b := range id {
		id[i] = letters[b%32]
	}
	return string(id)
}

// A JobState says where a job is.
type JobState struct {
	ID         string `json:"id"`
	State      string `json:"state"` // waiting, parked, held, aside, running, scheduled, retry, dead, finished
	Type       string `json:"type"`
	Queue      string `json:"queue"`
	Batch      string `json:"batch,omitempty"`
	Unique     string `json:"unique,omitempty"`
	Attempts   int    `json:"attempts"`
	EnqueuedAt Time   `json:"enqueued_at"`
	Start      Time   `json:"start"` // of scheduled and retry
	FailedAt   Time   `json:"failed_at"`
	Failure    string `json:"failure,omitempty"` // the last one
	Reason     string `json:"reason,omitempty"`  // of dead
	Outcome    string `json:"outcome,omitempty"` // of finished
	// Result is what its handler left, of finished.
	Result json.RawMessage `json:"result,omitempty"`
}

// Job says where a job is. A *MissingError: it is done, or was never enqueued.
func (c *Client) Job(ctx context.Context, id string) (JobState, error) {
	var state struct {
		JobState
		Cursor json.RawMessage
	}
	err := c.pages(ctx, "job", id, &state, func() json.RawMessage {
		if state.State != "" {
			return nil
		}
		return state.Cursor
	})
	return state.JobState, err
}

// Wait returns the job once it is finished or dead, or as it stands when the time is over. A *MissingError: it is done and its type
// is not kept, or was never enqueued.
func (c *Client) Wait(ctx context.Context, id string, timeout time.Duration) (JobState, error) {
	until := c.clock.Now().Add(timeout)
	for rest := 20 * time.Millisecond; ; rest = minOf(time.Second, rest*3/2) {
		asked := c.clock.Now()
		state, err := c.Job(ctx, id)
		now := c.clock.Now()
		if err != nil || state.State == "finished" || state.State == "dead" || !now.Before(until) {
			return state, err
		}
		if looked := 20 * now.Sub(asked); looked > rest { // it rests twenty times as long as a look takes
			rest = looked
		}
		if err := c.clock.Sleep(ctx, minOf(until.Sub(now), rest)); err != nil {
			return state, err
		}
	}
}

func minOf(a, b time.Duration) time.Duration {
	if a < b {
		return a
	}
	return b
}

// Cancel ends a job in any state, and says how: removed, marked (it ends where it stands), told (it runs), already.
func (c *Client) Cancel(ctx context.Context, id string) (string, error) {
	var answer struct {
		Cancelled string
		Cursor    json.RawMessage
	}
	err := c.pages(ctx, "cancel", id, &answer, func() json.RawMessage {
		if answer.Cancelled != "" {
			return nil
		}
		return answer.Cursor
	})
	return answer.Cancelled, err
}

// pages asks page by page. A job that moves meanwhile may be passed over, so it is looked for twice.
func (c *Client) pages(ctx context.Context, verb, id string, answer any, cursor func() json.RawMessage) error {
	document := map[string]any{"id": id}
	for looked := 0; ; {
		text, err := encode(document, "id")
		if err != nil {
			return err
		}
		err = c.ask(ctx, verb, string(text), id, answer)
		var missing *MissingError
		if errors.As(err, &missing) && looked == 0 {
			looked++
			delete(document, "cursor")
			continue
		}
		next := cursor()
		if err != nil || next == nil {
			return err
		}
		document["cursor"] = append(json.RawMessage{}, next...) // the next answer is read into the same bytes
	}
}

// An About says what this Weir can do.
type About struct {
	Protocol     int      `json:"protocol"`
	Verbs        []string `json:"verbs"`
	Capabilities []string `json:"capabilities"`
	Partitions   int      `json:"partitions"`
}

// About says what this Weir can do.
func (c *Client) About(ctx context.Context) (About, error) {
	var about About
	err := c.ask(ctx, "about", "{}", "", &about)
	return about, err
}
