package weir

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

const denialsMost = 1000

// denialLongest is short, so that a limit that was changed shows.
const denialLongest = time.Second

// A TakeOption says more about a slot.
type TakeOption func(*takeOptions)

type takeOptions struct {
	document takeDocument
	wait     time.Duration
	fresh    bool
}

type takeDocument struct {
	Limit string      `json:"limit"`
	Key   *string     `json:"key,omitempty"`
	Cost  any         `json:"cost,omitempty"`
	Wait  json.Number `json:"wait,omitempty"`
	Place string      `json:"place,omitempty"`
	Leave bool        `json:"leave,omitempty"`
	TTL   json.Number `json:"ttl,omitempty"`
	Tag   string      `json:"tag,omitempty"`
	Who   string      `json:"who,omitempty"`
}

// Key tells callers apart, for a limit that is kept by keys.
func Key(key string) TakeOption { return func(o *takeOptions) { o.document.Key = &key } }

// Cost takes so many slots.
func Cost(cost int) TakeOption { return func(o *takeOptions) { o.document.Cost = cost } }

// CostsOf takes so many slots by name.
func CostsOf(costs Costs) TakeOption { return func(o *takeOptions) { o.document.Cost = costs } }

// Wait stands in line with others who wait, at most so long.
func Wait(most time.Duration) TakeOption { return func(o *takeOptions) { o.wait = most } }

// Fresh asks also when the same was denied a moment ago.
func Fresh() TakeOption { return func(o *takeOptions) { o.fresh = true } }

// A Taken says how a limit is.
type Taken struct {
	Allowed    bool
	Limit      int           // the burst
	Remaining  int           // slots that are free now
	ResetAfter time.Duration // until all are
	RetryAfter time.Duration // of a denial
	Never      bool          // of a denial: it costs more than the limit can hold
}

type takeAnswer struct {
	Allowed          bool
	Limit, Remaining int
	ResetAfter       float64 `json:"reset_after"`
	RetryAfter       float64 `json:"retry_after"`
	StartAfter       float64 `json:"start_after"`
	AskAfter         float64 `json:"ask_after"`
	Never            bool
	Place, Token     string
}

func (a takeAnswer) taken() Taken {
	return Taken{a.Allowed, a.Limit, a.Remaining, duration(a.ResetAfter), duration(a.RetryAfter), a.Never}
}

// A Slot is one that was taken. It stays taken whatever comes of it.
type Slot struct{ Taken }

// Close does nothing: a slot of a rate is not given back.
func (*Slot) Close() error { return nil }

// Slot takes a slot, or returns a *DeniedError.
func (c *Client) Slot(ctx context.Context, limit string, options ...TakeOption) (*Slot, error) {
	taken, err := c.Take(ctx, limit, options...)
	if err != nil {
		return nil, err
	}
	if !taken.Allowed {
		return nil, &DeniedError{limit, taken.RetryAfter, taken.Never}
	}
	return &Slot{taken}, nil
}

// Rate says how a limit is, and takes nothing.
func (c *Client) Rate(ctx context.Context, limit string, options ...TakeOption) (Taken, error) {
	o := readOptions(limit, options)
	answer, err := c.askTake(ctx, "rate", o.document)
	return answer.taken(), err
}

func readOptions(limit string, options []TakeOption) takeOptions {
	o := takeOptions{document: takeDocument{Limit: limit}}
	for _, option := range options {
		option(&o)
	}
	o.document.Wait = span(o.wait)
	return o
}

func (c *Client) askTake(ctx context.Context, verb string, document takeDocument) (takeAnswer, error) {
	var answer takeAnswer
	text, err := encode(document, "")
	if err == nil {
		err = c.ask(ctx, verb, string(text), document.Limit, &answer)
	}
	return answer, err
}

// Take takes a slot, and says whether it was allowed. With Wait it returns when the slot begins. A denial is remembered for as long
// as it stands, one second at most.
func (c *Client) Take(ctx context.Context, limit string, options ...TakeOption) (Taken, error) {
	o := readOptions(limit, options)
	question := questionOf(o.document)
	if known, found := c.denials.find(question, c.clock.Now()); found && !o.fresh && (known.Never || known.RetryAfter > o.wait) {
		return known, nil
	}
	answer, asked, _, err := c.stand(ctx, "take", o.document, o.wait)
	if err == nil && !answer.Allowed {
		c.denials.keep(question, asked, answer.taken())
	}
	return answer.taken(), err
}

// stand stands in line until the slot begins, or is denied. It returns when that was asked, by the client's clock and by the wall's.
func (c *Client) stand(ctx context.Context, verb string, document takeDocument, wait time.Duration) (takeAnswer, time.Time, time.Time, error) {
	begin := c.clock.Now()
	for asked := begin; ; asked = c.clock.Now() {
		if left := wait - asked.Sub(begin); left > 0 {
			document.Wait = span(left)
		} else if document.Place != "" {
			document.Wait = "0"
		}
		since := time.Now().Round(0)
		answer, err := c.askTake(ctx, verb, document)
		if err == nil && answer.StartAfter > 0 {
			err = c.clock.Sleep(ctx, duration(answer.StartAfter))
		}
		if err == nil && answer.Place == "" {
			return answer, asked, since, nil
		}
		if err == nil {
			document.Place = answer.Place
			err = c.clock.Sleep(ctx, duration(answer.AskAfter))
		}
		if err != nil {
			c.leave(verb, document)
			return takeAnswer{}, asked, since, err
		}
	}
}

// leave gives up a place in the line, and what it may hold. If that fails the place is lost all the same, ten seconds behind its slot; a
// hold has an end.
func (c *Client) leave(verb string, document takeDocument) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if verb == "hold" {
		if text, err := encode(heldDocument{Token: document.Limit + "~" + document.Tag}, ""); err == nil {
			_, _ = c.carrier.call(ctx, "end", string(text))
		}
	}
	document.Wait, document.Leave = "", true
	if text, err := encode(document, ""); err == nil && document.Place != "" {
		_, _ = c.carrier.call(ctx, verb, string(text))
	}
}

type question struct {
	limit, key string
	keyed      bool
	cost       string
}

func questionOf(d takeDocument) question {
	q := question{limit: d.Limit, cost: "1"}
	if d.Key != nil {
		q.key, q.keyed = *d.Key, true
	}
	if d.Cost != nil {
		q.cost = fmt.Sprint(d.Cost)
	}
	return q
}

// denials answers again what was denied, until that can change.
type denials struct {
	mutex sync.Mutex
	kept  map[question]denial
}

type denial struct {
	asked, until time.Time
	taken        Taken
}

func (d *denials) find(q question, now time.Time) (Taken, bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	known, found := d.kept[q]
	if !found || !known.until.After(now) {
		return Taken{}, false
	}
	taken, passed := known.taken, now.Sub(known.asked)
	taken.ResetAfter -= passed
	if taken.ResetAfter < 0 {
		taken.ResetAfter = 0
	}
	if !taken.Never {
		taken.RetryAfter -= passed
	}
	return taken, true
}

func (d *denials) keep(q question, asked time.Time, taken Taken) {
	until := asked.Add(denialLongest)
	if !taken.Never && taken.RetryAfter < denialLongest {
		until = asked.Add(taken.RetryAfter)
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.kept == nil || len(d.kept) >= denialsMost {
		d.kept = map[question]denial{} // none of them stands longer than a second
	}
	d.kept[q] = denial{asked, until, taken}
}
