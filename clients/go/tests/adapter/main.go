// Holds a client and does what each line says: clients/tests/README.md.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/FZambia/sentinel"
	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"
	"weir"
	"weir/weirtest"
)

type adapter struct {
	client  *weir.Client
	fake    *weirtest.Fake
	ran     []any
	told    bool // a provider has said stop once
	handled map[string]bool
	worker  *weir.Worker
}

type order struct {
	Do, URL, Token, Way, To, CA, Type, ID, Name, Limit, Verb, Text, Rules string
	Args                                                                  json.RawMessage
	Options                                                               map[string]json.RawMessage
	Count                                                                 int
	Batch, Then, Queue                                                    string
	Key                                                                   *string
	Cost                                                                  *int
	Wait, Seconds, TTL                                                    float64
	Spent                                                                 *int
	Types                                                                 []string
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// job makes a weir.Job. What Go's types cannot say, or a zero that would say nothing, is refused here.
func (o order) job() (weir.Job, error) {
	job := weir.Job{Type: o.Type}
	if len(o.Args) > 0 {
		job.Args = o.Args
	}
	spans := map[string]*time.Duration{"delay": &job.Delay, "remember": &job.Remember, "timeout": &job.Timeout, "unique_until": &job.UniqueFor}
	whole := map[string]*int{"cost": &job.Cost, "max_attempts": &job.MaxAttempts}
	texts := map[string]*string{"id": &job.ID, "queue": &job.Queue, "key": &job.Key, "unique": &job.Unique, "batch": &job.Batch,
		"traceparent": &job.Traceparent}
	for name, value := range o.Options {
		var err error
		zero := string(value) == "0"
		if span, is := spans[name]; is {
			var seconds float64
			err = json.Unmarshal(value, &seconds)
			*span = duration(seconds)
		} else if number, is := whole[name]; is {
			err = json.Unmarshal(value, number)
		} else if text, is := texts[name]; is {
			err = json.Unmarshal(value, text)
		} else if name == "meta" {
			job.Meta = value
		} else {
			panic("no option " + name)
		}
		if err != nil || zero {
			return job, &weir.InvalidError{Why: "a weir.Job cannot say it", Member: name}
		}
	}
	return job, nil
}

func (a *adapter) takeOptions(o order) []weir.TakeOption {
	var options []weir.TakeOption
	if o.Key != nil {
		options = append(options, weir.Key(*o.Key))
	}
	if o.Cost != nil {
		options = append(options, weir.Cost(*o.Cost))
	}
	if o.Wait != 0 {
		options = append(options, weir.Wait(duration(o.Wait)))
	}
	if o.TTL != 0 {
		options = append(options, weir.TTL(duration(o.TTL)))
	}
	return options
}

func (a *adapter) hold(ctx context.Context, o order) (any, error) {
	held, err := a.client.Hold(ctx, o.Limit, a.takeOptions(o)...)
	if err != nil {
		return nil, err
	}
	if o.Spent != nil {
		held.Spent(*o.Spent)
	}
	if a.fake != nil {
		a.fake.Move(duration(o.Seconds))
	} else {
		time.Sleep(duration(o.Seconds))
	}
	return held.Token, held.Close()
}

func taken(t weir.Taken, err error) (any, error) {
	answer := map[string]any{"allowed": t.Allowed, "limit": t.Limit, "remaining": t.Remaining, "reset_after": t.ResetAfter.Seconds(), "retry_after": nil}
	if !t.Allowed && !t.Never {
		answer["retry_after"] = t.RetryAfter.Seconds()
	}
	return answer, err
}

// own is a connection of the user's that is more than an address.
func own(o order) (weir.Doer, error) {
	at, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	switch o.To {
	case "cluster":
		cluster := &redisc.Cluster{StartupNodes: []string{at.Host}}
		return weir.DoerFunc(func(_ context.Context, args ...any) (any, error) {
			conn := cluster.Get()
			defer conn.Close()
			redirected, err := redisc.RetryConn(conn, 5, 100*time.Millisecond)
			if err != nil {
				return nil, err
			}
			return redirected.Do(args[0].(string), args[1:]...)
		}), nil
	case "sentinel":
		sentinels := &sentinel.Sentinel{Addrs: []string{at.Host}, MasterName: "mymaster", Dial: func(address string) (redis.Conn, error) {
			return redis.Dial("tcp", address, redis.DialConnectTimeout(time.Second), redis.DialReadTimeout(time.Second))
		}}
		return weir.Pool(&redis.Pool{MaxIdle: 3, Dial: func() (redis.Conn, error) {
			master, err := sentinels.MasterAddr()
			if err != nil {
				return nil, err
			}
			return redis.Dial("tcp", master)
		}}), nil
	case "tls":
		pem, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		return weir.Pool(&redis.Pool{MaxIdle: 3, Dial: func() (redis.Conn, error) {
			return redis.DialURL(o.URL, redis.DialTLSConfig(&tls.Config{RootCAs: roots}))
		}}), nil
	}
	panic("what is " + o.To)
}

func (a *adapter) connect(o order) (err error) {
	if o.Way == "fake" {
		a.fake = weirtest.New()
		a.client = weir.New(a.fake)
		return nil
	}
	if o.To != "" {
		doer, err := own(o)
		a.client = weir.New(doer)
		return err
	}
	a.client, err = weir.OpenToken(o.URL, o.Token)
	return err
}

func (a *adapter) run(_ context.Context, job *weir.JobRun) error {
	var value any
	if err := job.Decode(&value); err != nil {
		return err
	}
	a.ran = append(a.ran, value)
	if told, _ := value.(map[string]any); told["do"] == "throttled" && !a.told {
		a.told = true
		return weir.Throttled(2 * time.Second)
	}
	return job.Result(value)
}

func (a *adapter) do(ctx context.Context, o order) (any, error) {
	c := a.client
	switch o.Do {
	case "connect":
		return nil, a.connect(o)
	case "enqueue":
		job, err := o.job()
		if err != nil {
			return nil, err
		}
		done, err := c.Enqueue(ctx, job)
		return map[string]any{"id": done.ID, "new": done.New, "locked": done.Locked}, err
	case "enqueue_many":
		n := 0
		rows := func() (any, error) {
			if n == o.Count {
				return nil, io.EOF
			}
			n++
			return map[string]int{"n": n - 1}, nil
		}
		done, err := c.EnqueueAll(ctx, o.Type, rows, weir.Batch(o.Batch), weir.Then(o.Then), weir.Queue(o.Queue))
		return map[string]int{"lines": done.Lines, "jobs": done.Jobs, "resumed": done.Resumed}, err
	case "job":
		return c.Job(ctx, o.ID)
	case "cancel":
		return c.Cancel(ctx, o.ID)
	case "wait":
		return c.Wait(ctx, o.ID, duration(o.Seconds))
	case "batch":
		return c.Batch(ctx, o.Name)
	case "seal":
		return c.Seal(ctx, o.Name, o.Then, "")
	case "take":
		return taken(c.Take(ctx, o.Limit, a.takeOptions(o)...))
	case "rate":
		return taken(c.Rate(ctx, o.Limit, a.takeOptions(o)...))
	case "slot":
		slot, err := c.Slot(ctx, o.Limit, a.takeOptions(o)...)
		if err != nil {
			return nil, err
		}
		defer slot.Close()
		return taken(slot.Taken, nil)
	case "hold":
		return a.hold(ctx, o)
	case "about":
		return c.About(ctx)
	case "call":
		answer, err := c.Call(ctx, o.Verb, o.Text)
		return json.RawMessage(answer), err
	case "set_rate":
		return nil, a.fake.Rate(o.Name, o.Rules)
	case "keep":
		a.fake.Keep(o.Type, duration(o.Seconds))
		return nil, nil
	case "move":
		a.fake.Move(duration(o.Seconds))
		return nil, nil
	case "jobs":
		return a.fake.Jobs(o.Type), nil
	case "drain":
		for _, name := range o.Types {
			if !a.worker.Handles(name) {
				a.worker.Handle(name, a.run)
			}
		}
		_, err := a.fake.Drain(ctx, a.worker)
		return a.ran, err
	}
	panic("what is " + o.Do)
}

// refusal says in the words of the tests what an error is.
func refusal(err error) map[string]any {
	answer := map[string]any{"message": err.Error()}
	var unreachable *weir.UnreachableError
	var refused *weir.RefusedError
	var invalid *weir.InvalidError
	var missing *weir.MissingError
	var closed *weir.ClosedError
	var denied *weir.DeniedError
	var unknown *weir.UnknownError
	switch {
	case errors.As(err, &unknown):
		answer["kind"], answer["id"] = "unknown", unknown.ID
	case errors.As(err, &refused):
		answer["kind"] = "refused"
	case errors.As(err, &invalid):
		answer["kind"], answer["member"], answer["line"] = "invalid", invalid.Member, invalid.Line
	case errors.As(err, &missing):
		answer["kind"], answer["member"] = "missing", missing.Member
	case errors.As(err, &closed):
		answer["kind"], answer["member"] = "closed", closed.Member
	case errors.As(err, &denied):
		answer["kind"] = "denied"
		if !denied.Never {
			answer["retry_after"] = denied.RetryAfter.Seconds()
		}
	case errors.As(err, &unreachable):
		answer["kind"] = "unreachable"
	default:
		panic(err)
	}
	return answer
}

func main() {
	a := &adapter{worker: weir.NewWorker(), ran: []any{}}
	in := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var o order
		if err := json.Unmarshal(line, &o); err != nil {
			panic(err)
		}
		answer := map[string]any{}
		if value, err := a.do(context.Background(), o); err != nil {
			answer = refusal(err)
		} else {
			answer["ok"] = value
		}
		if err := out.Encode(answer); err != nil {
			panic(err)
		}
	}
}
