package weir_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"weir"
	"weir/weirtest"
)

var ctx = context.Background()

const about = `{"protocol":1,"verbs":{"enqueue":["FCALL","f","1","k",""],"job":["FCALL_RO","f","1","k",""],"take":["FCALL","f","1","k",""]}}`

// A script answers with one reply after the other: a text, or an error. The last one stays.
type script struct {
	replies []any
	told    [][]any
	now     time.Time
	sleeps  func()
}

func (s *script) Do(_ context.Context, args ...any) (any, error) {
	s.told = append(s.told, args)
	reply := s.replies[0]
	if len(s.replies) > 1 {
		s.replies = s.replies[1:]
	}
	if err, is := reply.(error); is {
		return nil, err
	}
	return []byte(reply.(string)), nil
}

func (s *script) Now() time.Time { return s.now }

func (s *script) Sleep(ctx context.Context, d time.Duration) error {
	s.now = s.now.Add(d)
	if s.sleeps != nil {
		s.sleeps()
	}
	return ctx.Err()
}

func client(replies ...any) (*weir.Client, *script) {
	s := &script{replies: replies}
	return weir.New(s), s
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ninstead of\n%v", got, want)
	}
}

// is returns err as an error of that type.
func is[E error](t *testing.T, err error) (as E) {
	t.Helper()
	if !errors.As(err, &as) {
		t.Fatalf("%T %v", err, err)
	}
	return as
}

func TestDocument(t *testing.T) {
	c, s := client(about, `{"id":"j","new":true}`)
	job := weir.Job{Type: "mail", ID: "j", Args: map[string]any{"a": "<ü>", "n": uint64(math.MaxInt64)}, Delay: 1500 * time.Millisecond, Unique: "u",
		UniqueUntilStart: true, Cost: 2, Timeout: time.Minute, Remember: time.Hour, Meta: json.RawMessage("[ 1.50 ]")}
	if _, err := c.Enqueue(ctx, job); err != nil {
		t.Fatal(err)
	}
	equal(t, s.told[1], []any{"FCALL", "f", "1", "k", "", "enqueue", `{"remember":3600,"in":1.5,"unique":"u","unique_until":"start","id":"j","type":"mail",` +
		`"cost":2,"args":{"a":"<ü>","n":9223372036854775807},"timeout":60,"meta":[1.50]}`})
	c.Enqueue(ctx, weir.Job{Type: "mail", At: time.UnixMicro(86400250000)})
	var made struct {
		ID           string
		Remember, At float64
	}
	if err := json.Unmarshal([]byte(s.told[2][6].(string)), &made); err != nil || len(made.ID) != 16 || made.Remember != 60 || made.At != 86400.25 {
		t.Error(err, made)
	}
}

func TestWhatIsNoJSONIsNotSent(t *testing.T) {
	c, s := client(about)
	for _, job := range []weir.Job{{Args: math.NaN()}, {Args: func() {}}, {Args: json.RawMessage("{")}, {Meta: math.Inf(1)}, {UniqueFor: 1, UniqueUntilStart: true}} {
		_, err := c.Enqueue(ctx, job)
		if is[*weir.InvalidError](t, err).Member == "" {
			t.Error(err)
		}
	}
	equal(t, len(s.told), 0)
}

func TestAnotherVersionIsReadOnce(t *testing.T) {
	gone := redis.Error("ERR Function not found")
	other := strings.ReplaceAll(about, `"f"`, `"g"`)
	state := `{"id":"j","state":"waiting"}`
	c, s := client(about, state, state, gone, other, state, gone, about, gone)
	for i := 0; i < 3; i++ {
		if _, err := c.Job(ctx, "j"); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, []any{s.told[0][0], s.told[2][1], s.told[3][1], s.told[4][0], s.told[5][1]}, []any{"HGET", "f", "f", "HGET", "g"})
	_, err := c.Job(ctx, "j")
	is[*weir.UnreachableError](t, err)
	equal(t, len(s.told), 9)
}

// goRedis is what go-redis calls a reply that is an error.
type goRedis string

func (e goRedis) Error() string { return string(e) }
func (goRedis) RedisError()     {}

// A goRedisClient has the methods of a client of go-redis that a Doer needs. It answers as that does: a text is a string.
type goRedisClient struct{ replies []any }

type goRedisCmd struct{ reply any }

func (c *goRedisClient) Do(context.Context, ...any) *goRedisCmd {
	cmd := &goRedisCmd{c.replies[0]}
	c.replies = c.replies[1:]
	return cmd
}

func (cmd *goRedisCmd) Result() (any, error) {
	if err, is := cmd.reply.(error); is {
		return nil, err
	}
	return cmd.reply, nil
}

func TestGoRedis(t *testing.T) {
	rdb := &goRedisClient{[]any{goRedis("redis: nil"), about, `{"id":"m","new":true}`, errors.New("EOF"), `{"id":"m","new":false}`, goRedis("NOPERM no")}}
	c := weir.New(weir.DoerFunc(func(ctx context.Context, args ...any) (any, error) { return rdb.Do(ctx, args...).Result() }))
	_, err := c.Job(ctx, "m")
	is[*weir.UnreachableError](t, err)
	for _, isNew := range []bool{true, false} {
		done, err := c.Enqueue(ctx, weir.Job{Type: "mail", ID: "m"})
		equal(t, []any{done.ID, done.New, err}, []any{"m", isNew, nil})
	}
	_, err = c.Job(ctx, "m")
	is[*weir.RefusedError](t, err)
}

func TestWhatRedisSays(t *testing.T) {
	for _, reply := range []any{redis.Error("OOM full"), goRedis("BUSY x"), goRedis("redis: nil"), redis.Error("LOADING x"), "{}", `{"protocol":2,"verbs":{}}`, "no JSON", `{"protocol":1,"verbs":{}}`} {
		c, s := client(reply)
		_, err := c.Job(ctx, "j")
		is[*weir.UnreachableError](t, err)
		equal(t, len(s.told), 1)
	}
	c, _ := client(redis.Error("NOPERM no"))
	_, err := c.Job(ctx, "j")
	is[*weir.RefusedError](t, err)
	c, _ = client(about, `{"refused":"new kind","why":"w"}`)
	_, err = c.Job(ctx, "j")
	is[*weir.UnreachableError](t, err)
}

func TestElsewhereAndCursors(t *testing.T) {
	missing := `{"refused":"missing","why":"w"}`
	c, s := client(about, `{"cursor":[1]}`, `{"elsewhere":"ns:{3}:"}`, strings.ReplaceAll(about, `"k"`, `"k3"`), `{"cursor":[2]}`, missing, missing)
	_, err := c.Job(ctx, "j")
	is[*weir.MissingError](t, err)
	var seen []string
	for _, words := range s.told {
		seen = append(seen, fmt.Sprint(words[1], " ", words[len(words)*2/3-1], " ", words[len(words)-1]))
	}
	equal(t, seen, []string{`weir:{0}:about weir:{0}:about protocol`, `f k {"id":"j"}`, `f k {"cursor":[1],"id":"j"}`, `ns:{3}:about ns:{3}:about protocol`,
		`f k3 {"id":"j"}`, `f k3 {"cursor":[2],"id":"j"}`, `f k {"id":"j"}`})
}

func TestALostAnswerIsAskedForAgain(t *testing.T) {
	lost := errors.New("cut")
	c, s := client(about, lost, lost, &weir.UnreachableError{Why: "refused"}, `{"id":"m","new":false}`)
	done, err := c.Enqueue(ctx, weir.Job{Type: "mail", ID: "m"})
	equal(t, fmt.Sprint(done, err), "{m false false} <nil>")
	equal(t, s.told[4], s.told[1])
	c, _ = client(about, lost)
	ending, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err = c.Enqueue(ending, weir.Job{Type: "mail", ID: "m"})
	equal(t, is[*weir.UnknownError](t, err).ID, "m")
	equal(t, errors.Is(err, context.DeadlineExceeded), true)
	_, err = c.Enqueue(ending, weir.Job{Type: "mail", ID: "m"})
	is[*weir.UnreachableError](t, err)
	equal(t, errors.Is(err, context.DeadlineExceeded), true)
}

func TestDenials(t *testing.T) {
	c, s := client(about, `{"allowed":false,"limit":1,"remaining":0,"reset_after":9,"retry_after":0.5}`)
	take := func(options ...weir.TakeOption) weir.Taken {
		taken, err := c.Take(ctx, "l", options...)
		if err != nil || taken.Allowed {
			t.Fatal(taken, err)
		}
		return taken
	}
	take()
	s.now = s.now.Add(200 * time.Millisecond)
	equal(t, take().RetryAfter, 300*time.Millisecond)
	equal(t, len(s.told), 2)
	take(weir.Fresh())
	take(weir.Key("k"))
	take(weir.Cost(2))
	s.now = s.now.Add(600 * time.Millisecond)
	take()
	equal(t, len(s.told), 6)
	_, err := c.Slot(ctx, "l")
	equal(t, is[*weir.DeniedError](t, err).RetryAfter, 500*time.Millisecond)
}

func TestAPlaceIsLeft(t *testing.T) {
	c, s := client(about, `{"allowed":false,"limit":1,"remaining":0,"reset_after":9,"retry_after":5,"place":"p","ask_after":5}`)
	ending, cancel := context.WithCancel(ctx)
	slept := 0
	s.sleeps = func() {
		if slept++; slept == 2 {
			cancel()
		}
	}
	_, err := c.Take(ending, "l", weir.Wait(30*time.Second))
	equal(t, errors.Is(err, context.Canceled), true)
	var documents []string
	for _, words := range s.told[1:] {
		documents = append(documents, words[6].(string))
	}
	equal(t, documents, []string{`{"limit":"l","wait":30}`, `{"limit":"l","wait":25,"place":"p"}`, `{"limit":"l","place":"p","leave":true}`})
}

func TestHTTP(t *testing.T) {
	reply, status := `{"id":"j","new":true}`, 200
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		if r.Header.Get("Authorization") != "Bearer secret" || r.URL.Path != "/api/v1/enqueue" {
			t.Error(r.URL, r.Header)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, reply)
	}))
	defer server.Close()
	c, err := weir.OpenToken(server.URL+"/", "secret")
	if err != nil {
		t.Fatal(err)
	}
	enqueue := func() error {
		ending, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		_, err := c.Enqueue(ending, weir.Job{Type: "mail", ID: "j"})
		return err
	}
	equal(t, enqueue(), nil)
	status, reply = 400, `{"refused":"invalid","member":"cost","why":"w"}`
	equal(t, is[*weir.InvalidError](t, enqueue()).Member, "cost")
	status, reply = 401, "no"
	is[*weir.RefusedError](t, enqueue())
	status = 302
	is[*weir.UnreachableError](t, enqueue())
	status = 0
	is[*weir.UnknownError](t, enqueue())
	server.Close()
	is[*weir.UnreachableError](t, enqueue())
	for _, address := range []string{"ftp://x", "unix:///x?db=a", "redis://%"} {
		if _, err := weir.Open(address); err == nil {
			t.Error(address)
		}
	}
}

func TestRows(t *testing.T) {
	fake := weirtest.New()
	c := weir.New(fake)
	all := func(kind string, rows weir.Rows, options ...weir.BulkOption) error {
		_, err := c.EnqueueAll(ctx, kind, rows, options...)
		return err
	}
	equal(t, all("mail", weir.Slice([]int{1, 2, 3}), weir.Batch("b")), nil)
	for _, rows := range [][]int{{1, 2}, {1, 2, 4}, {}} {
		is[*weir.InvalidError](t, all("mail", weir.Slice(rows), weir.Batch("b")))
	}
	equal(t, len(fake.Jobs("")), 3)
	is[*weir.InvalidError](t, all("mail", weir.Slice([]int{1}), weir.Then("report")))
	many := make([]any, 1500)
	for _, wrong := range []any{math.NaN(), uint64(1) << 63, "\x00"} {
		equal(t, is[*weir.InvalidError](t, all("mail", weir.Slice(append(many, wrong)))).Line, 1501)
	}
	wrong := is[*weir.InvalidError](t, all("", weir.Slice([]weir.Job{{Type: "a"}, {Type: "a", Delay: 1e9}})))
	equal(t, fmt.Sprintln(wrong.Line, wrong.Member), "2 in\n")
	equal(t, is[*weir.InvalidError](t, all("", weir.Slice([]int{1}))).Line, 1)
	rows := make(chan weir.Job, 2)
	rows <- weir.Job{Type: "x", Args: 1, Queue: "high"}
	rows <- weir.Job{Type: "y"}
	close(rows)
	equal(t, all("", weir.Chan(rows)), nil)
	equal(t, len(fake.Jobs("x")), 1)
	broken := errors.New("the file ends")
	equal(t, all("mail", func() (any, error) { return nil, broken }), broken)
}

func TestAnswers(t *testing.T) {
	w := weir.NewWorker()
	var ends error
	w.Handle("t", func(_ context.Context, job *weir.JobRun) error {
		var args string
		if err := job.Decode(&args); args == "panic" || err != nil {
			panic("told so")
		}
		if args == "spent" {
			job.Spent(0)
		}
		if args == "costs" {
			job.SpentCosts(weir.Costs{"tokens": job.Costs["tokens"] + job.Cost})
		}
		return ends
	})
	for _, one := range []struct {
		args, answer string
		ends         error
	}{
		{"", `"done"`, nil}, {"spent", `"done","cost":0`, nil}, {"costs", `"done","spent":{"tokens":12}`, nil},
		{"", `"retry","after":2,"reason":"why"`, weir.Retry(2*time.Second, "why")},
		{"", `"retry","after":0,"reason":"why"`, weir.Retry(0, "why")}, {"", `"throttled","after":0.3`, weir.Throttled(300 * time.Millisecond)},
		{"", `"throttled"`, weir.Throttled(0)}, {"", `"dead","reason":"no"`, fmt.Errorf("x: %w", weir.Dead("no"))},
		{"", `"retry","reason":"plain"`, errors.New("plain")}, {"panic", `"retry","reason":"panic: told so"`, nil},
		{"", `"retry","after":4,"reason":"l: denied; again in 4s"`, &weir.DeniedError{Limit: "l", RetryAfter: 4 * time.Second}},
	} {
		ends = one.ends
		answer, err := w.RunOne(ctx, []byte(`{"id":"j","type":"t","cost":{"plain":3,"tokens":9},"args":"`+one.args+`"}`))
		text, _ := json.Marshal(answer)
		equal(t, fmt.Sprintf("%s %v", text, err), `{"id":"j","status":`+one.answer+`} <nil>`)
	}
	answer, _ := w.RunOne(ctx, []byte(`{"id":"j","type":"other"}`))
	equal(t, answer.Reason, "this program has no handler for other")
}

func TestTestMode(t *testing.T) {
	fake := weirtest.New()
	c := weir.New(fake)
	w := weir.NewWorker()
	ends := []error{weir.Throttled(5 * time.Second), weir.Retry(time.Minute, "ill"), errors.New("x"), nil}
	w.Handle("mail", func(context.Context, *weir.JobRun) error {
		end := ends[0]
		ends = ends[1:]
		return end
	})
	equal(t, fake.Rate("mail", "100/s"), nil)
	c.Enqueue(ctx, weir.Job{Type: "mail", Batch: "b", ID: "j"})
	for _, after := range []time.Duration{0, 5, 60, 31} {
		fake.Move(after * time.Second)
		for _, most := range []int{1, 0} {
			ran, err := fake.Drain(ctx, w)
			equal(t, fmt.Sprint(ran, err), fmt.Sprint(most, nil))
		}
	}
	state, _ := c.Batch(ctx, "b")
	equal(t, fmt.Sprintln(state.State, state.Done, state.Failed), "open 1 2\n")
	for _, rule := range []string{"1/1m,adapt", "0/s", "", "1/1m,algorithm=sliding-window", "1/m,by=key 1/m,by=id", "1/0s"} {
		is[*weir.InvalidError](t, fake.Rate("x", rule))
	}
}

func TestLimits(t *testing.T) {
	for rule, after := range map[string]time.Duration{
		"2/1h": 30 * time.Minute, "2/1h,burst=1": 30 * time.Minute, "2/1h,algorithm=sliding-log": time.Hour, "2/1d,algorithm=fixed-window": 24 * time.Hour,
	} {
		fake := weirtest.New()
		// Windows begin at midnight.
		fake.Move(fake.Now().Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(fake.Now()))
		equal(t, fake.Rate("l", rule), nil)
		c := weir.New(fake)
		var last weir.Taken
		for last, _ = c.Take(ctx, "l"); last.Allowed; last, _ = c.Take(ctx, "l") {
		}
		equal(t, rule+fmt.Sprint(last.RetryAfter), rule+fmt.Sprint(after))
		taken, err := c.Take(ctx, "l", weir.Wait(after))
		equal(t, fmt.Sprint(taken.Allowed, err), "true <nil>")
	}
	fake := weirtest.New()
	c := weir.New(fake)
	equal(t, fake.Rate("mail", "concurrency=1,by=args.to", "1/1h,by=args.to"), nil)
	for _, to := range []string{"ann", "ann", "bob"} {
		c.Enqueue(ctx, weir.Job{Type: "mail", Args: map[string]string{"to": to}})
	}
	w := weir.NewWorker()
	w.Handle("mail", func(context.Context, *weir.JobRun) error { return nil })
	for _, want := range []int{2, 0} {
		ran, _ := fake.Drain(ctx, w)
		equal(t, ran, want)
	}
	fake.Move(time.Hour)
	ran, _ := fake.Drain(ctx, w)
	equal(t, ran, 1)
}
