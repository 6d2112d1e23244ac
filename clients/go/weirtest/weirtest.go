// Package weirtest is a Weir in memory, for the tests of programs: c := weir.New(weirtest.New()).
//
// It takes the documents of the protocol and refuses what Weir refuses. Its clock stands still until Move, or until the client
// sleeps. It has limits by gcra (token-bucket is the same), fixed-window, sliding-log and concurrency, each by keys too, and
// refuses sliding-window, months, zones, adapt and offset. A limit holds the type of its name. It has no partitions, schedules, rights, or workers:
// Drain runs jobs here and now, one after the other.
package weirtest

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"weir"
)

const second = int64(1e6) // times are whole microseconds since 1970

var noSum = strings.Repeat("0", 16)

type job struct {
	document        json.RawMessage
	id, kind, queue string
	state, reason   string
	result          json.RawMessage
	batch, unique   string
	cost            costs
	maxAttempts     int64
	attempts        int64
	enqueuedAt, due int64
}

type holder struct {
	id      string
	ends    int64
	atStart bool // a start frees the key
	timed   bool // only time does
}

type batch struct {
	counts                       map[string]int64 // total, done, dead, cancelled, failed
	lines                        int64
	sum, then, queue             string
	createdAt, sealedAt, endedAt int64
}

// A Fake is a Weir in memory. It is a Doer for weir.New.
type Fake struct {
	mutex   sync.Mutex
	now     int64
	made    int64 // ids
	limits  map[string]*limit
	line    []*job           // in the order in which they start
	ids     map[string]int64 // until when each is known
	unique  map[string]holder
	batches map[string]*batch
	streams map[string]int64
	keeps   map[string]int64 // of a type
	holds   map[string]*hold // by their tokens
	kept    map[string]*job  // those that are done, until they are due
}

// New returns an empty one.
func New() *Fake {
	return &Fake{now: time.Now().UnixMicro(), limits: map[string]*limit{}, ids: map[string]int64{}, unique: map[string]holder{},
		batches: map[string]*batch{}, holds: map[string]*hold{}, streams: map[string]int64{},
		keeps: map[string]int64{}, kept: map[string]*job{}}
}

// ---- What tests ask

// Jobs returns the jobs of the type that have not ended, and those that are dead, as handlers see them. "": of all types.
func (f *Fake) Jobs(jobType string) []json.RawMessage {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	found := []json.RawMessage{}
	for _, one := range f.line {
		if jobType == "" || jobType == one.kind {
			found = append(found, one.document)
		}
	}
	return found
}

// Dead returns the reasons of the dead jobs, by their ids.
func (f *Fake) Dead() map[string]string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	dead := map[string]string{}
	for _, one := range f.line {
		if one.state == "dead" {
			dead[one.id] = one.reason
		}
	}
	return dead
}

// Rate sets a limit, as weir rate set.
func (f *Fake) Rate(name string, rules ...string) error {
	l, err := readLimit(rules)
	if err != nil {
		return err
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.limits[name] = l
	return nil
}

// Keep keeps jobs of that type, with their results, so long behind their end, as weir worker --keep.
func (f *Fake) Keep(jobType string, d time.Duration) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.keeps[jobType] = d.Microseconds()
}

// Move moves the clock forward.
func (f *Fake) Move(d time.Duration) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.now += d.Microseconds()
}

// Drain runs what may start at this time, each job by its handler, and returns how many were run. Where no handler is there, and
// where a limit says not yet, jobs stay.
func (f *Fake) Drain(ctx context.Context, w *weir.Worker) (int, error) {
	for ran := 0; ; ran++ {
		one, gates, line := f.begin(w)
		if one == nil {
			return ran, nil
		}
		answer, err := w.RunOne(ctx, line)
		if err != nil {
			return ran, err
		}
		f.settle(one, gates, answer)
	}
}

// ---- The clock of the client

// Now returns the time of the clock.
func (f *Fake) Now() time.Time {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return time.UnixMicro(f.now)
}

// Sleep moves the clock: a rest that is too short for it would never end.
func (f *Fake) Sleep(ctx context.Context, d time.Duration) error {
	if d < time.Microsecond {
		d = time.Microsecond
	}
	f.Move(d)
	return ctx.Err()
}

// ---- What a client calls

var verbs = []string{"about", "batch", "bulk", "cancel", "end", "enqueue", "hold", "job", "rate", "renew", "take"}

// Do answers what a client of Redis asks: HGET tells the words of the verbs, and those call them.
func (f *Fake) Do(_ context.Context, args ...any) (any, error) {
	if args[0] == "HGET" {
		words := map[string][]string{}
		for _, verb := range verbs {
			words[verb] = []string{"FAKE"}
		}
		return json.Marshal(map[string]any{"protocol": 1, "verbs": words})
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	answer, err := f.call(args[1].(string), args[2].(string))
	if err != nil {
		answer = refusal(err)
	}
	return json.Marshal(answer)
}

func (f *Fake) call(verb, text string) (map[string]any, error) {
	if verb == "bulk" {
		return f.bulk(text)
	}
	d, err := readObject(text)
	if err != nil {
		return nil, err
	}
	handlers := map[string]func(document) (map[string]any, error){
		"about": f.about, "batch": f.batch, "cancel": f.cancel, "end": f.endHold, "enqueue": f.enqueue, "hold": f.hold, "job": f.job, "rate": f.rate,
		"renew": f.renew, "take": f.take,
	}
	return handlers[verb](d)
}

func refusal(err error) map[string]any {
	answer := map[string]any{"why": err.Error(), "refused": "unavailable"}
	name := ""
	var invalid *weir.InvalidError
	var missing *weir.MissingError
	var closed *weir.ClosedError
	switch {
	case errors.As(err, &invalid):
		answer["refused"], name = "invalid", invalid.Member
		if invalid.Line > 0 {
			answer["line"] = invalid.Line
		}
	case errors.As(err, &missing):
		answer["refused"], name = "missing", missing.Member
	case errors.As(err, &closed):
		answer["refused"], name = "closed", closed.Member
	}
	if name != "" {
		answer["member"] = name
	}
	return answer
}

func seconds(us int64) float64 { return float64(us) / 1e6 }

func micros(seconds float64) int64 { return int64(math.Round(seconds * 1e6)) }

func (f *Fake) about(d document) (map[string]any, error) {
	return map[string]any{"protocol": 1, "verbs": verbs, "capabilities": []string{"costs", "hold", "result"}, "partitions": 1}, d.check(nil, "", "document")
}

func (f *Fake) enqueue(d document) (map[string]any, error) {
	if err := d.check(enqueueMembers, "type", "job"); err != nil {
		return nil, err
	}
	if d.has("in") && d.has("at") {
		return nil, invalid("at", `wrong job: "in" or "at", not both`)
	}
	if d.has("unique_until") && !d.has("unique") {
		return nil, invalid("unique_until", `wrong job: "unique_until" without "unique"`)
	}
	if err := f.checkCost(d); err != nil {
		return nil, err
	}
	id, key := d.text("id", ""), d.text("unique", "")
	if f.ids[id] > f.now {
		return map[string]any{"id": id, "new": false}, nil
	}
	if held, is := f.unique[key]; is && held.ends > f.now {
		return map[string]any{"id": held.id, "new": false, "locked": true}, nil
	}
	if d.has("batch") {
		if _, err := f.openBatch(d.text("batch", "")); err != nil {
			return nil, err
		}
	}
	remember := 86400.0
	if id == "" {
		id, remember = f.makeID(), 60
	}
	f.ids[id] = f.now + micros(d.number("remember", remember))
	one := f.add(d, id, d.text("queue", "default"), d.text("batch", ""))
	one.due = f.now + micros(d.number("in", 0))
	if d.has("at") {
		one.due = micros(d.number("at", 0))
	}
	if one.due > f.now {
		one.state = "scheduled"
	}
	if key != "" {
		one.unique = key
		held := holder{id: id, ends: later}
		switch until, _ := d.get("unique_until"); {
		case string(until) == `"start"`:
			held.atStart = true
		case until != nil && until[0] != '"':
			held.ends, held.timed = f.now+micros(d.number("unique_until", 0)), true
		}
		f.unique[key] = held
	}
	return map[string]any{"id": id, "new": true}, nil
}

func (f *Fake) makeID() string {
	f.made++
	return fmt.Sprintf("made-%d", f.made)
}

func (f *Fake) checkCost(d document) error {
	l := f.limits[d.text("type", "")]
	if l == nil {
		return nil
	}
	cost := d.cost("cost")
	for _, r := range l.rules {
		if r.takes(cost, 1) > r.burst {
			return invalid("cost", "wrong job: its cost %s never fits %s of %s", cost.word(), r.text, d.text("type", ""))
		}
	}
	return nil
}

func (f *Fake) add(d document, id, queue, batch string) *job {
	one := &job{document: d.body(id), id: id, kind: d.text("type", ""), queue: queue, state: "waiting", batch: batch, enqueuedAt: f.now, due: f.now,
		cost: d.cost("cost"), maxAttempts: int64(d.number("max_attempts", 25))}
	f.line = append(f.line, one)
	if batch != "" {
		f.batches[batch].counts["total"]++
	}
	return one
}

func (f *Fake) openBatch(name string) (*batch, error) {
	b := f.batches[name]
	if b == nil {
		b = &batch{counts: map[string]int64{}, sum: noSum, createdAt: f.now}
		f.batches[name] = b
	}
	if b.sealedAt != 0 {
		return nil, &weir.ClosedError{Why: "batch " + name + " is sealed: it takes no more jobs; use another name", Member: "batch"}
	}
	return b, nil
}

func (f *Fake) bulk(text string) (map[string]any, error) {
	if len(text) > bulkBytes {
		return nil, invalid("", "the text has more than %d bytes", bulkBytes)
	}
	first, rest, _ := strings.Cut(text, "\n")
	head, err := readObject(first)
	if err == nil {
		err = head.check(headMembers, "", "head")
	}
	if err != nil {
		return nil, err
	}
	name, stream := head.text("batch", ""), head.text("stream", "")
	switch {
	case head.has("batch") && head.has("stream"):
		return nil, invalid("stream", `wrong head: "batch" or "stream", one of them`)
	case !head.has("batch") && !head.has("stream"):
		return nil, invalid("batch", `wrong head: "batch" or "stream", one of them`)
	case head.has("stream") && head.has("sum"):
		return nil, invalid("sum", `wrong head: a "sum" is of a batch`)
	}
	var lines []string
	if rest = strings.TrimSuffix(rest, "\n"); rest != "" || strings.HasSuffix(text, "\n\n") {
		lines = strings.Split(rest, "\n")
	}
	if len(lines) > bulkLines {
		return nil, invalid("", "%d lines: at most %d in one text", len(lines), bulkLines)
	}
	at, sum := f.streams[stream], noSum
	if known := f.batches[name]; known != nil {
		at, sum = known.lines, known.sum
	}
	if at != int64(head.number("offset", 0)) || sum != head.text("sum", sum) {
		return map[string]any{"taken": false, "lines": at, "jobs": 0, "sum": sum}, nil
	}
	var jobs []document
	for i, line := range lines {
		one, err := f.bulkLine(head, line)
		var wrong *weir.InvalidError
		if errors.As(err, &wrong) {
			wrong.Line = i + 1
			return nil, wrong
		}
		if one != nil {
			jobs = append(jobs, one)
		}
	}
	at += int64(len(lines))
	if name != "" {
		b, err := f.openBatch(name)
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			digest := sha1.Sum([]byte(sum + line))
			sum = hex.EncodeToString(digest[:8])
		}
		b.lines, b.sum = at, sum
	} else {
		f.streams[stream] = at
	}
	for _, one := range jobs {
		id := one.text("id", "")
		if id == "" {
			id = f.makeID()
		}
		f.add(one, id, one.text("queue", head.text("queue", "default")), name)
	}
	return map[string]any{"taken": true, "lines": at, "jobs": len(jobs), "sum": sum}, nil
}

// bulkLine reads a line. nil: it is blank.
func (f *Fake) bulkLine(head document, line string) (d document, err error) {
	if strings.Trim(line, " \t\r") == "" {
		return nil, nil
	}
	if kind, has := head.get("type"); has {
		if fault := faultOf([]byte(line), deepest); fault != "" {
			return nil, invalid("", "wrong args, not JSON: %s", fault)
		}
		d = document{{"type", kind}, {"args", json.RawMessage(line)}}
	} else if d, err = readObject(line); err == nil {
		err = d.check(lineMembers, "type", "job")
	}
	if err == nil {
		err = f.checkCost(d)
	}
	return d, err
}

func (f *Fake) batch(d document) (map[string]any, error) {
	if err := d.check(batchMembers, "batch", "document"); err != nil {
		return nil, err
	}
	for _, pair := range [][2]string{{"then", "seal"}, {"queue", "then"}} {
		if d.has(pair[0]) && !d.has(pair[1]) {
			return nil, invalid(pair[0], `wrong document: "%s" without "%s"`, pair[0], pair[1])
		}
	}
	name := d.text("batch", "")
	b := f.batches[name]
	if d.has("seal") && (b == nil || b.sealedAt == 0) {
		b, _ = f.openBatch(name)
		b.sealedAt, b.then, b.queue = f.now, d.text("then", ""), d.text("queue", "default")
		f.endBatch(name)
	} else if b != nil && d.has("then") && (b.then != d.text("then", "") || b.queue != d.text("queue", "default")) {
		return nil, &weir.ClosedError{Why: "batch " + name + " was sealed before, with another job to follow"}
	}
	if b == nil {
		return nil, &weir.MissingError{Why: "batch " + name + ": no such batch"}
	}
	answer := map[string]any{"batch": name, "state": "open", "left": b.left(), "lines": b.lines, "sum": b.sum, "created_at": seconds(b.createdAt)}
	for _, count := range []string{"total", "done", "dead", "cancelled", "failed"} {
		answer[count] = b.counts[count]
	}
	if b.then != "" {
		answer["then"] = b.then
	}
	if b.sealedAt != 0 {
		answer["state"], answer["sealed_at"] = "sealed", seconds(b.sealedAt)
	}
	if b.endedAt != 0 {
		answer["state"], answer["ended_at"] = "ended", seconds(b.endedAt)
	}
	return answer, nil
}

func (b *batch) left() int64 {
	return b.counts["total"] - b.counts["done"] - b.counts["dead"] - b.counts["cancelled"]
}

func (f *Fake) endBatch(name string) {
	b := f.batches[name]
	if b.sealedAt == 0 || b.endedAt != 0 || b.left() > 0 {
		return
	}
	b.endedAt = f.now
	if b.then != "" {
		c := b.counts
		args := fmt.Sprintf(`{"batch":"%s","total":%d,"done":%d,"dead":%d,"cancelled":%d}`, name, c["total"], c["done"], c["dead"], c["cancelled"])
		f.add(document{{"type", json.RawMessage(`"` + b.then + `"`)}, {"args", json.RawMessage(args)}}, name+".then", b.queue, "")
	}
}

func (f *Fake) find(d document) (*job, error) {
	if err := d.check(idMembers, "id", "document"); err != nil {
		return nil, err
	}
	id := d.text("id", "")
	if one := f.kept[id]; one != nil && one.due > f.now {
		return one, nil
	}
	for _, one := range f.line {
		if one.id == id {
			return one, nil
		}
	}
	return nil, &weir.MissingError{Why: "job " + id + ": no such job here: it is done, or was never enqueued"}
}

func (f *Fake) job(d document) (map[string]any, error) {
	one, err := f.find(d)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"id": one.id, "state": one.state, "type": one.kind, "queue": one.queue, "attempts": one.attempts,
		"enqueued_at": seconds(one.enqueuedAt)}
	if one.batch != "" {
		answer["batch"] = one.batch
	}
	if one.unique != "" {
		answer["unique"] = one.unique
	}
	switch one.state {
	case "dead":
		answer["reason"] = one.reason
	case "scheduled", "retry":
		answer["start"] = seconds(one.due)
	case "finished":
		answer["outcome"] = "done"
		if one.result != nil {
			answer["result"] = one.result
		}
	}
	return answer, nil
}

func (f *Fake) cancel(d document) (map[string]any, error) {
	one, err := f.find(d)
	if err != nil {
		return nil, err
	}
	if one.state == "dead" || one.state == "finished" {
		return nil, &weir.ClosedError{Why: "job " + one.id + ": it is " + one.state + " already"}
	}
	if one.state == "running" {
		return map[string]any{"id": one.id, "cancelled": "told"}, nil
	}
	f.end(one, "cancelled")
	return map[string]any{"id": one.id, "cancelled": "removed"}, nil
}

func (f *Fake) rate(d document) (map[string]any, error) {
	if err := d.check(rateMembers, "limit", "document"); err != nil {
		return nil, err
	}
	return f.askLimit(d, false, "")
}

func (f *Fake) take(d document) (map[string]any, error) {
	if err := d.check(takeMembers, "limit", "document"); err != nil {
		return nil, err
	}
	return f.askInLine(d, "")
}

// askInLine takes slots, or says at which place the caller stands. tag: of a hold.
func (f *Fake) askInLine(d document, tag string) (map[string]any, error) {
	if d.has("place") && !d.has("wait") && !d.has("leave") {
		return nil, invalid("place", `wrong document: "place" without "wait" or "leave"`)
	}
	if d.has("place") && strings.Split(d.text("place", ""), ".")[1] != d.word() {
		return nil, invalid("place", `wrong document: "place" is of another cost`)
	}
	if d.has("leave") && !d.has("place") {
		return nil, invalid("leave", `wrong document: "leave" without "place"`)
	}
	if tag != "" && d.text("tag", tag) != tag {
		return nil, invalid("tag", `wrong document: "tag" is not that of "place"`)
	}
	return f.askLimit(d, true, tag)
}

func (f *Fake) askLimit(d document, takes bool, tag string) (map[string]any, error) {
	l, cost := f.limits[d.text("limit", "")], d.cost("cost")
	if l == nil {
		return nil, &weir.MissingError{Why: "there is no such limit; set it with weir rate set, or give a rule", Member: "limit"}
	}
	for _, r := range l.rules {
		if tag == "" && r.algorithm == "concurrency" {
			return nil, invalid("limit", "the limit counts jobs in flight, which a take cannot give back")
		}
	}
	if (l.by != "") != d.has("key") {
		return nil, invalid("key", "the limit is kept for each key and there is none, or has no keys and there is one")
	}
	if d.has("leave") {
		return map[string]any{"left": true}, nil
	}
	gates := l.of(d.text("key", ""))
	paused := l.paused(d.text("key", ""))
	begins, misfit := latest(paused, f.now), int64(0)
	for _, g := range gates {
		if at := g.start(f.now, cost); begins == never {
			continue
		} else if at == never {
			begins, misfit = never, g.burst
		} else {
			begins = latest(begins, at)
		}
	}
	if begins == f.now && takes {
		for _, g := range gates {
			g.take(f.now, cost)
		}
	}
	remaining, burst, reset := int64(later), int64(later), latest(paused, f.now)
	for _, g := range gates {
		reset = latest(reset, g.resets(f.now))
		remaining, burst = -latest(-remaining, -g.remaining(f.now)), -latest(-burst, -g.burst)
	}
	if paused > f.now {
		remaining = 0
	}
	answer := map[string]any{"allowed": begins == f.now, "limit": burst, "remaining": remaining, "reset_after": seconds(reset - f.now)}
	if begins == never {
		answer["never"], answer["limit"] = true, misfit
	} else if begins > f.now {
		after := seconds(begins - f.now)
		if begins >= later { // as somebody ends
			after = 10
			if d.number("wait", 0) > 0 {
				after = 0.1
			}
		}
		answer["retry_after"] = after
		if after <= d.number("wait", -1) {
			answer["place"], answer["ask_after"] = fmt.Sprintf("%d.%s.%s", f.now, d.word(), or(tag, "fake")), math.Min(5, after)
		}
	}
	return answer, nil
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// ---- Running

// begin takes the next job that may start, and returns it with its gates and its line.
func (f *Fake) begin(w *weir.Worker) (*job, []*gate, []byte) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, one := range f.line {
		if one.state == "dead" || one.state == "running" || one.due > f.now || !w.Handles(one.kind) {
			continue
		}
		gates, may := f.gatesOf(one)
		if !may {
			continue
		}
		for _, g := range gates {
			g.take(f.now, one.cost)
		}
		if f.unique[one.unique].atStart {
			f.free(one)
		}
		one.state = "running"
		front := fmt.Sprintf(`{"attempt":%d,"enqueued_at":%.6f,`, one.attempts+1, seconds(one.enqueuedAt))
		return one, gates, append([]byte(front), one.document[1:]...)
	}
	return nil, nil, nil
}

func (f *Fake) gatesOf(one *job) (gates []*gate, may bool) {
	l := f.limits[one.kind]
	if l == nil {
		return nil, true
	}
	key := l.keyOf(one.document)
	f.endLate()
	gates, may = l.of(key), l.paused(key) <= f.now
	for _, g := range gates {
		may = may && g.start(f.now, one.cost) == f.now
	}
	return gates, may
}

func (f *Fake) settle(one *job, gates []*gate, answer weir.Answer) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, g := range gates {
		g.end()
	}
	one.state = "waiting"
	after, err := answer.After.Float64()
	switch answer.Status {
	case "done":
		f.end(one, "done")
		if keep, is := f.keeps[one.kind]; is {
			one.state, one.due, one.result, f.kept[one.id] = "finished", f.now+keep, answer.Result, one
			one.attempts++
		}
	case "throttled":
		if err != nil {
			after = 1
		}
		until := f.now + latest(second/10, micros(after))
		if l := f.limits[one.kind]; l != nil {
			l.pause(l.keyOf(one.document), until)
		} else {
			one.due = until
		}
	default:
		one.attempts++
		one.reason = answer.Reason
		if one.batch != "" {
			f.batches[one.batch].counts["failed"]++
		}
		if answer.Status == "dead" || one.attempts >= one.maxAttempts {
			f.end(one, "dead")
			return
		}
		if err != nil {
			after = 15 + math.Pow(float64(one.attempts), 4)
		}
		one.state, one.due = "retry", f.now+micros(after)
	}
}

func (f *Fake) free(one *job) {
	if held, is := f.unique[one.unique]; is && held.id == one.id && !held.timed {
		delete(f.unique, one.unique)
	}
}

func (f *Fake) end(one *job, how string) {
	if how == "dead" {
		one.state = "dead"
	} else {
		for i := range f.line {
			if f.line[i] == one {
				f.line = append(f.line[:i:i], f.line[i+1:]...)
				break
			}
		}
	}
	f.free(one)
	if one.batch != "" {
		f.batches[one.batch].counts[how]++
		f.endBatch(one.batch)
	}
}
