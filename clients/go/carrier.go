package weir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

const callTimeout = 15 * time.Second

// A Doer does one command of Redis, and may be asked by several goroutines at a time. Pool and Conn make one of redigo's; of
// go-redis it is DoerFunc(func(ctx context.Context, args ...any) (any, error) { return rdb.Do(ctx, args...).Result() }).
// An error that is not Redis's reply means that nobody knows whether the command was done.
type Doer interface {
	Do(ctx context.Context, args ...any) (any, error)
}

// DoerFunc is a function as a Doer.
type DoerFunc func(ctx context.Context, args ...any) (any, error)

// Do calls the function.
func (f DoerFunc) Do(ctx context.Context, args ...any) (any, error) { return f(ctx, args...) }

// Pool makes a Doer of a pool of redigo.
func Pool(pool *redis.Pool) Doer {
	return DoerFunc(func(ctx context.Context, args ...any) (any, error) {
		conn, err := pool.GetContext(ctx)
		if err != nil {
			return nil, unsent(err)
		}
		return do(ctx, conn, args, func() { conn.Close() })
	})
}

// Conn makes a Doer of one connection of redigo. When that is broken, every call fails.
func Conn(conn redis.Conn) Doer {
	turn := make(chan struct{}, 1)
	return DoerFunc(func(ctx context.Context, args ...any) (any, error) {
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if err := conn.Err(); err != nil {
			<-turn
			return nil, unsent(err)
		}
		return do(ctx, conn, args, func() { <-turn })
	})
}

// do waits for the reply, or for the end of the context. done is called when the connection is free.
func do(ctx context.Context, conn redis.Conn, args []any, done func()) (any, error) {
	type result struct {
		reply any
		err   error
	}
	came := make(chan result, 1)
	go func() {
		var r result
		if timed, is := conn.(redis.ConnWithTimeout); is {
			r.reply, r.err = timed.DoWithTimeout(callTimeout, args[0].(string), args[1:]...)
		} else {
			r.reply, r.err = conn.Do(args[0].(string), args[1:]...)
		}
		done()
		came <- r
	}()
	select {
	case r := <-came:
		return r.reply, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// unsent says of a failure that nothing was sent. A refused login stays Redis's reply.
func unsent(err error) error {
	if isReply(err) {
		return err
	}
	return &UnreachableError{"Redis: " + err.Error(), err}
}

func isReply(err error) bool {
	var redigo redis.Error
	var goRedis interface{ RedisError() }
	return errors.As(err, &redigo) || errors.As(err, &goRedis)
}

var errFunctionMissing = errors.New("function not found")

// redisFailure says what an error of a Doer means.
func redisFailure(err error) error {
	var unreachable *UnreachableError
	if errors.As(err, &unreachable) {
		return err
	}
	if !isReply(err) {
		return &lostError{err}
	}
	text := err.Error()
	switch word, _, _ := strings.Cut(text, " "); {
	case strings.Contains(text, "unction not found"):
		return errFunctionMissing
	case word == "NOPERM" || word == "NOAUTH" || word == "WRONGPASS":
		return &RefusedError{"Redis refused: " + text + "; weir acl producer, weir acl taker print what a user needs"}
	}
	return &UnreachableError{"Redis: " + text, err}
}

type carrier interface {
	call(ctx context.Context, verb, text string) ([]byte, error)
}

// A redisCarrier calls by the words that weir:{0}:about tells, by the prefix of its keys.
type redisCarrier struct {
	doer Doer
	home string

	mutex sync.Mutex
	known map[string]map[string][]string
}

func newRedisCarrier(doer Doer) *redisCarrier {
	namespace := os.Getenv("WEIR_NAMESPACE")
	if namespace == "" {
		namespace = "weir"
	}
	return &redisCarrier{doer: doer, home: namespace + ":{0}:", known: map[string]map[string][]string{}}
}

// call follows an answer that says elsewhere, and a cursor, which is of the partition that gave it.
func (c *redisCarrier) call(ctx context.Context, verb, text string) ([]byte, error) {
	prefix, asked := c.home, text
	for hops := 0; hops < 64; {
		reply, err := c.ask(ctx, prefix, verb, asked)
		if err != nil {
			return nil, err
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(reply, &members) != nil || len(members) != 1 {
			return reply, nil
		}
		if cursor, found := members["cursor"]; found {
			var document map[string]json.RawMessage
			if err := json.Unmarshal([]byte(text), &document); err != nil {
				return nil, &UnreachableError{"a cursor for what is no document", err}
			}
			document["cursor"] = cursor
			joined, _ := json.Marshal(document)
			asked = string(joined)
			continue
		}
		elsewhere, found := members["elsewhere"]
		if !found || json.Unmarshal(elsewhere, &prefix) != nil {
			return reply, nil
		}
		asked = text
		hops++
	}
	return nil, &UnreachableError{Why: "it is always elsewhere: the partitions of this Redis disagree"}
}

func (c *redisCarrier) ask(ctx context.Context, prefix, verb, text string) ([]byte, error) {
	c.mutex.Lock()
	verbs, again := c.known[prefix]
	c.mutex.Unlock()
	for {
		if verbs == nil {
			var err error
			if verbs, err = c.read(ctx, prefix); err != nil {
				return nil, err
			}
		}
		words := verbs[verb]
		if len(words) == 0 {
			return nil, &UnreachableError{Why: "the Weir in this Redis does not know " + verb}
		}
		command := make([]any, 0, len(words)+2)
		for _, word := range append(words[:len(words):len(words)], verb, text) {
			command = append(command, word)
		}
		reply, err := c.do(ctx, command...)
		if !errors.Is(err, errFunctionMissing) {
			return reply, err
		}
		if !again {
			return nil, &UnreachableError{Why: "Redis: " + err.Error()}
		}
		verbs, again = nil, false
	}
}

func (c *redisCarrier) read(ctx context.Context, prefix string) (map[string][]string, error) {
	reply, err := c.do(ctx, "HGET", prefix+"about", "protocol")
	if err != nil {
		return nil, err
	}
	var about struct {
		Protocol int
		Verbs    map[string][]string
	}
	if json.Unmarshal(reply, &about) != nil || about.Protocol != 1 || about.Verbs == nil {
		return nil, &UnreachableError{Why: "no Weir of protocol 1 in this Redis (" + prefix + "about); a worker of Weir brings it as it begins"}
	}
	c.mutex.Lock()
	c.known[prefix] = about.Verbs
	c.mutex.Unlock()
	return about.Verbs, nil
}

func (c *redisCarrier) do(ctx context.Context, args ...any) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, &UnreachableError{"not sent: " + err.Error(), err}
	}
	reply, err := c.doer.Do(ctx, args...)
	if err != nil && (reply != nil || err.Error() != "redis: nil") { // go-redis says so of what is not there
		return nil, redisFailure(err)
	}
	switch reply := reply.(type) {
	case []byte:
		return reply, nil
	case string:
		return []byte(reply), nil
	}
	return nil, nil
}

// open returns a Doer that connects to that address at its first call.
func open(address string) (Doer, error) {
	options := []redis.DialOption{redis.DialConnectTimeout(5 * time.Second), redis.DialReadTimeout(callTimeout), redis.DialWriteTimeout(callTimeout)}
	dial := func() (redis.Conn, error) { return redis.DialURL(address, options...) }
	if strings.HasPrefix(address, "/") || strings.HasPrefix(address, ".") {
		path, err := filepath.Abs(address)
		if err != nil {
			return nil, err
		}
		address = "unix://" + path
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	switch u.Scheme {
	case "redis", "rediss":
	case "unix":
		if db := u.Query().Get("db"); db != "" {
			number, err := strconv.Atoi(db)
			if err != nil {
				return nil, fmt.Errorf("%s: db=%s is no number", address, db)
			}
			options = append(options, redis.DialDatabase(number))
		}
		if password, given := u.User.Password(); given {
			options = append(options, redis.DialUsername(u.User.Username()), redis.DialPassword(password))
		}
		dial = func() (redis.Conn, error) { return redis.Dial("unix", u.Path, options...) }
	default:
		return nil, fmt.Errorf("%s: an address begins with redis://, rediss://, unix:// or http", address)
	}
	return Pool(&redis.Pool{MaxIdle: 8, MaxActive: 64, Wait: true, IdleTimeout: 4 * time.Minute, Dial: dial}), nil
}

// httpBytesMost is the size of the largest document: weir serve reads no more, and may close the connection before it says so.
const httpBytesMost = 2 << 20

type httpCarrier struct {
	url, token string
	client     *http.Client
}

func newHTTPCarrier(address, token string) *httpCarrier {
	return &httpCarrier{strings.TrimRight(address, "/"), token, &http.Client{
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (c *httpCarrier) call(ctx context.Context, verb, text string) ([]byte, error) {
	if len(text) > httpBytesMost {
		return nil, &InvalidError{Why: fmt.Sprintf("the document has more than %d bytes", httpBytesMost)}
	}
	sent := false
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), "POST", c.url+"/api/v1/"+verb, strings.NewReader(text))
	if err != nil {
		return nil, &InvalidError{Why: err.Error()}
	}
	request.GetBody = nil // what was lost is asked again by who knows whether that is safe
	request.Header.Set("Content-Type", "application/json")
	if verb == "bulk" {
		request.Header.Set("Content-Type", "application/x-ndjson")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.client.Do(request)
	if err != nil && !sent {
		return nil, &UnreachableError{err.Error(), err}
	} else if err != nil {
		return nil, &lostError{err}
	}
	defer response.Body.Close()
	reply, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, &lostError{err}
	}
	if response.StatusCode == 200 || bytes.Contains(reply, []byte(`"refused"`)) {
		return reply, nil
	}
	why := fmt.Sprintf("%s: HTTP %d: %.200s", c.url, response.StatusCode, reply)
	if response.StatusCode >= 500 {
		return nil, &lostError{errors.New(why)}
	}
	if response.StatusCode == 401 || response.StatusCode == 403 {
		return nil, &RefusedError{why}
	}
	return nil, &UnreachableError{Why: why}
}
