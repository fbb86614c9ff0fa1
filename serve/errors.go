package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"google.golang.org/grpc/codes"
)

// kind is what sort of thing went wrong, as both transports tell it.
type kind struct {
	http int
	grpc codes.Code
	why  string // as refusals are counted
}

var (
	kindInvalid   = kind{http.StatusBadRequest, codes.InvalidArgument, "invalid"}
	kindUnknown   = kind{http.StatusNotFound, codes.NotFound, "unknown"}
	kindMethod    = kind{http.StatusMethodNotAllowed, codes.Unimplemented, "unknown"}
	kindForbidden = kind{http.StatusUnauthorized, codes.Unauthenticated, "token"}
	kindSite      = kind{http.StatusForbidden, codes.PermissionDenied, "site"}
	kindTooLarge  = kind{http.StatusRequestEntityTooLarge, codes.ResourceExhausted, "too_large"}
	kindSlow      = kind{http.StatusRequestTimeout, codes.DeadlineExceeded, "slow"}
	kindEncoding  = kind{http.StatusUnsupportedMediaType, codes.InvalidArgument, "encoding"}
	kindFixed     = kind{http.StatusConflict, codes.FailedPrecondition, "conflict"}
	kindBusy      = kind{http.StatusServiceUnavailable, codes.Unavailable, "busy"}
	kindJournal   = kind{http.StatusServiceUnavailable, codes.Unavailable, "journal"}
	kindGone      = kind{499, codes.Canceled, "gone"} // 499 is nginx's: nobody reads it but in logs
	kindLate      = kind{http.StatusGatewayTimeout, codes.DeadlineExceeded, "late"}
	kindInternal  = kind{http.StatusInternalServerError, codes.Internal, "internal"}
)

// failure is an error with its kind.
type failure struct {
	kind
	message string
}

func (e *failure) Error() string { return e.message }

func fail(k kind, format string, args ...any) error { return &failure{k, fmt.Sprintf(format, args...)} }

func invalid(format string, args ...any) error { return fail(kindInvalid, format, args...) }

// mostMessage is how long an error may be, in bytes: what clients send is no part of what
// is reserved for answers.
const mostMessage = 4 << 10

// classify finds the kind of any error, and cuts its message.
func classify(err error) *failure {
	f := kindOf(err)
	if len(f.message) > mostMessage {
		f = &failure{f.kind, strings.ToValidUTF8(f.message[:mostMessage], "") + "…"}
	}
	return f
}

func kindOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if body, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &failure{kindTooLarge, fmt.Sprintf("the body has more than %d bytes (--max-body)", body.Limit)}
	}
	switch {
	case is[*infer.UpdateError](err), is[*infer.NodeError](err):
		return &failure{kindInvalid, err.Error()}
	case errors.Is(err, infer.ErrFixedGraph), is[*infer.KeyError](err):
		return &failure{kindFixed, err.Error()}
	case is[*infer.JournalError](err):
		return &failure{kindJournal, err.Error()}
	case is[*infer.GrowthError](err), is[*budget.ExceededError](err): // by the graph, which is to grow
		return &failure{kindFixed, err.Error() + " (--memory)"}
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{kindLate, "no answer within the time limit (--timeout)"}
	case errors.Is(err, context.Canceled):
		return &failure{kindGone, "the client has gone"}
	}
	return &failure{kindInternal, err.Error()}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// blame makes an error of running a model on a client's tensors the client's, unless
// onnxruntime itself failed.
func blame(err error) error {
	if err == nil || is[*ort.RunError](err) || errors.Is(err, ort.ErrClosed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return invalid("%v", err)
}
