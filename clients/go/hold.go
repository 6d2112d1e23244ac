package weir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const holdTTL = 30 * time.Second

// TTL is how long slots stay held if this program dies; 30 seconds unless it is given.
func TTL(d time.Duration) TakeOption { return func(o *takeOptions) { o.document.TTL = span(d) } }

// A Held has slots, until Close.
type Held struct {
	Token   string
	client  *Client
	ttl     time.Duration
	ctx     context.Context
	lose    context.CancelFunc
	over    chan struct{}
	spent   any
	closed  bool
	renewed holdKeeper // nil: not in the test mode
}

// In the test mode, whose clock stands still, a client's hold lasts as long as it is not closed.
type holdKeeper interface {
	KeepHold(token string, keep bool)
}

type heldDocument struct {
	Token string `json:"token"`
	Spent any    `json:"spent,omitempty"`
}

// Hold holds slots, of concurrency too, until Close, or returns a *DeniedError. They are renewed meanwhile; if this program dies they come
// back a TTL later.
func (c *Client) Hold(ctx context.Context, limit string, options ...TakeOption) (*Held, error) {
	o := readOptions(limit, append([]TakeOption{TTL(holdTTL)}, options...))
	ttl, err := o.document.TTL.Float64()
	if err != nil {
		return nil, &InvalidError{Why: `wrong hold: "ttl" is not above 0`, Member: "ttl"}
	}
	host, _ := os.Hostname()
	o.document.Tag, o.document.Who = makeID(), fmt.Sprintf("%s:%d", host, os.Getpid())
	answer, _, since, err := c.stand(ctx, "hold", o.document, o.wait)
	if err != nil {
		return nil, err
	}
	if taken := answer.taken(); !taken.Allowed {
		return nil, &DeniedError{limit, taken.RetryAfter, taken.Never}
	}
	h := &Held{Token: answer.Token, client: c, ttl: duration(ttl), over: make(chan struct{})}
	h.ctx, h.lose = context.WithCancel(ctx)
	if keeper, is := c.clock.(holdKeeper); is {
		h.renewed = keeper
		keeper.KeepHold(h.Token, true)
	} else {
		go h.renew(since)
	}
	return h, nil
}

// Context ends when the slots may be another's: what they stand for must stop then.
func (h *Held) Context() context.Context { return h.ctx }

// Spent says what it has cost in truth; the rates take the difference, or give it back.
func (h *Held) Spent(cost int) { h.spent = cost }

// SpentCosts says it by name.
func (h *Held) SpentCosts(costs Costs) { h.spent = costs }

// renew counts by the wall clock, which goes on while the machine sleeps.
func (h *Held) renew(since time.Time) {
	defer h.lose()
	tick, next := time.NewTicker(minOf(h.ttl/10, time.Second)), since.Add(h.ttl/3)
	defer tick.Stop()
	for {
		select {
		case <-h.over:
			return
		case <-tick.C:
		}
		now := time.Now().Round(0)
		if !now.Before(since.Add(h.ttl)) {
			return
		}
		if now.Before(next) {
			continue
		}
		ctx, cancel := context.WithDeadline(context.Background(), since.Add(h.ttl))
		err := h.ask(ctx, "renew", heldDocument{Token: h.Token})
		cancel()
		var missing *MissingError
		if errors.As(err, &missing) {
			return
		}
		if err == nil {
			since, next = now, now.Add(h.ttl/3)
		}
	}
}

func (h *Held) ask(ctx context.Context, verb string, document heldDocument) error {
	text, err := encode(document, "")
	if err == nil {
		err = h.client.ask(ctx, verb, string(text), h.Token, &struct{}{})
	}
	return err
}

// Close gives the slots back. A *MissingError: they were not held to the end. If Redis is away they come back by themselves.
func (h *Held) Close() error {
	if h.closed {
		return nil
	}
	h.closed = true
	close(h.over)
	ctx, cancel := context.WithTimeout(context.Background(), giveUp)
	defer cancel()
	err := h.ask(ctx, "end", heldDocument{h.Token, h.spent})
	if h.renewed != nil {
		h.renewed.KeepHold(h.Token, false)
	}
	h.lose()
	var unreachable *UnreachableError
	var unknown *UnknownError
	if errors.As(err, &unreachable) || errors.As(err, &unknown) {
		return nil
	}
	return err
}
