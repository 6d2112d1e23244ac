package weir

import (
	"fmt"
	"time"
)

// UnreachableError says that Redis, or weir serve, does not answer, has no room, or has no Weir in it yet. Nothing was done:
// trying again is safe.
type UnreachableError struct {
	Why string
	Err error // what the connection said, where it did
}

func (e *UnreachableError) Error() string { return e.Why }
func (e *UnreachableError) Unwrap() error { return e.Err }

// RefusedError says that a login, a token or a right is missing or wrong: a person has to mend it.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return e.Why }

// InvalidError says that the call is wrong, and always will be.
type InvalidError struct {
	Why    string
	Member string // of the document that is wrong, where it is one
	Line   int    // of a bulk, counted from 1; 0: no line
}

func (e *InvalidError) Error() string { return e.Why }

// MissingError says that there is no such job, limit or batch.
type MissingError struct{ Why, Member string }

func (e *MissingError) Error() string { return e.Why }

// ClosedError says that the state forbids it: the batch is sealed or cancelled, the job is dead or has ended.
type ClosedError struct{ Why, Member string }

func (e *ClosedError) Error() string { return e.Why }

// DeniedError says that the limit allows no slot now.
type DeniedError struct {
	Limit      string
	RetryAfter time.Duration // until the same may be allowed
	Never      bool          // it costs more than the limit can hold
}

func (e *DeniedError) Error() string {
	if e.Never {
		return e.Limit + ": this costs more than the limit can hold"
	}
	return fmt.Sprintf("%s: denied; again in %v", e.Limit, e.RetryAfter)
}

// UnknownError says that the connection was lost, or the context ended, on the way: perhaps it was done. Asked again with the
// same ID it happens once.
type UnknownError struct {
	ID  string // of the job, or the name of the batch
	Err error
}

func (e *UnknownError) Error() string {
	again := e.ID
	if again == "" {
		again = "the same"
	}
	return fmt.Sprintf("outcome unknown: %v; ask again with %s, it happens once", e.Err, again)
}
func (e *UnknownError) Unwrap() error { return e.Err }

// lostError is what a carrier returns when nobody knows whether the call was done.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// An outcome is the end of a job, returned by its handler.
type outcome struct {
	status, reason string
	after          *time.Duration
}

func (e *outcome) Error() string {
	if e.reason == "" {
		return e.status
	}
	return e.reason
}

// Retry is returned by a handler whose job failed, and shall run again after that time. Any other error: after the backoff of
// the worker.
func Retry(after time.Duration, reason string) error { return &outcome{"retry", reason, &after} }

// Dead is returned by a handler whose job will never succeed: it is kept for a person to look at.
func Dead(reason string) error { return &outcome{"dead", reason, nil} }

// Throttled is returned by a handler whose provider said stop: the limits of the type pause so long, and no attempt is used.
// 0: as long as Weir thinks right.
func Throttled(after time.Duration) error {
	if after == 0 {
		return &outcome{"throttled", "", nil}
	}
	return &outcome{"throttled", "", &after}
}
