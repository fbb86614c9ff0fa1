package serve

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/gsrc-dev/gsrc/internal/lists"
	pb "github.com/gsrc-dev/gsrc/serve/inferencepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// frameBytes stand before a message: whether it is compressed, and its length.
const frameBytes = 5

// RPC returns the gRPC side of the server, a handler for HTTP/2. Package grpc does the
// protocol; the message is read here first, by the rules of every other body.
func (s *Server) RPC() http.Handler {
	g := grpc.NewServer(grpc.MaxRecvMsgSize(int(s.o.MaxBody)), grpc.MaxSendMsgSize(int(min(3*s.o.MaxAnswer, 1<<31-1))),
		grpc.UnaryInterceptor(s.intercept))
	pb.RegisterGRPCInferenceServiceServer(g, &grpcService{s: s})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() { // the connection ends when its calls have
			w.Header().Set("Connection", "close")
		}
		if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			s.turnAway(w, r, fail(kindEncoding, "this address speaks gRPC"))
			return
		}
		infer := r.URL.Path == pb.GRPCInferenceService_ModelInfer_FullMethodName
		x := &exchange{left: make(chan struct{})}
		if infer {
			x.done = s.begin("grpc", "unknown")
		}
		deadline := http.NewResponseController(w)
		if err := s.receive(w, r, x, infer); err != nil {
			x.c.close()
			s.turnAwayRPC(w, err)
			deadline.SetReadDeadline(past)
			if infer {
				x.done(x.c, classify(err).grpc.String(), err)
			}
			return
		}
		defer x.c.close()
		x.writing = func() { x.c.begin(func() { deadline.SetWriteDeadline(past) }) }
		g.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
		if x.taken.Swap(true) {
			<-x.left // where the client has gone, work ends after the call
		} else if infer { // the message could not be read
			x.done(x.c, codes.Internal.String(), errors.New("no message of the protocol"))
		}
	})
}

type exchangeKey struct{}

// exchange is what the handler and the interceptor know of a call.
type exchange struct {
	c       *call
	done    func(c *call, code string, err error)
	writing func()
	taken   atomic.Bool   // by the interceptor, or by the handler when the call ends before
	left    chan struct{} // closed when the interceptor is done with it
}

// receive reads the message of a call, and puts it in the place of the body.
func (s *Server) receive(w http.ResponseWriter, r *http.Request, x *exchange, infer bool) (err error) {
	open := r.URL.Path == pb.GRPCInferenceService_ServerLive_FullMethodName || r.URL.Path == pb.GRPCInferenceService_ServerReady_FullMethodName
	if !open {
		if err := s.authorize(r.Header.Values("Authorization")); err != nil {
			return err
		}
	}
	deadline := http.NewResponseController(w)
	if x.c, err = s.intake.open(func() { deadline.SetReadDeadline(past) }); err != nil {
		return err
	}
	var frame [frameBytes]byte
	if _, err := io.ReadFull(r.Body, frame[:]); err != nil {
		return x.c.broken(err)
	}
	length := int64(binary.BigEndian.Uint32(frame[1:]))
	if length > s.o.MaxBody {
		return tooLarge(s.o.MaxBody)
	}
	data, err := x.c.read(r.Body, length, length)
	if err != nil {
		return err
	}
	// As it is handed on, and as it is decoded.
	need := 2*int64(len(data)) + 4096
	if infer {
		n, err := decodedBytes(data)
		if err != nil {
			return err
		}
		need += n
	}
	if err := x.c.grow(need); err != nil {
		return err
	}
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(frame[:]), bytes.NewReader(data)))
	return nil
}

// turnAwayRPC answers a call with an error alone, whatever of it has come.
func (s *Server) turnAwayRPC(w http.ResponseWriter, err error) {
	f := classify(err)
	s.count(f)
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Set("Grpc-Status", strconv.Itoa(int(f.grpc)))
	h.Set("Grpc-Message", url.PathEscape(f.message))
	w.WriteHeader(http.StatusOK)
}

// decodedBytes bounds the memory that a ModelInferRequest takes beside its bytes once
// it is decoded, and as tensors. What is short in a message may be long in memory: an
// empty text is 2 bytes there and 40 here.
func decodedBytes(message []byte) (int64, error) {
	counts := map[protowire.Number]int{}
	sum := int64(0)
	err := fields(message, func(n protowire.Number, kind protowire.Type, value []byte) error {
		if counts[n]++; n >= 4 && n <= 7 && counts[n] > mostTensors {
			return invalid("the request has more than %d inputs, outputs or parameters", mostTensors)
		}
		sum += 512
		switch {
		case n == 7: // a tensor, or texts with their lengths
			sum += int64(len(value)) + 16*int64(len(value)/4+1)
			return nil
		case n != 5 || kind != protowire.BytesType:
			return nil
		}
		inner := map[protowire.Number]int{}
		return fields(value, func(n protowire.Number, kind protowire.Type, value []byte) error {
			switch inner[n]++; {
			case n == 4 && inner[n] > mostTensors:
				return invalid("an input has more than %d parameters", mostTensors)
			case n == 3: // the shape; 8 bytes for a varint
				sum += 16 * int64(len(value)+1)
			case n == 5:
				return fields(value, func(n protowire.Number, kind protowire.Type, value []byte) error {
					switch {
					case n == 8:
						sum += int64(len(value)) + 2*24 + 16
					case n >= 6 && kind == protowire.BytesType: // packed, of fixed size
						sum += int64(len(value))
					default: // of varints, or not packed
						sum += 16 * int64(len(value)+1)
					}
					return nil
				})
			}
			sum += 256
			return nil
		})
	})
	return sum, err
}

// fields calls f for each field of a message; value is of those with a length.
func fields(b []byte, f func(n protowire.Number, kind protowire.Type, value []byte) error) error {
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return invalid("the message is no ModelInferRequest: %v", protowire.ParseError(n))
		}
		b = b[n:]
		var value []byte
		if kind == protowire.BytesType {
			value, n = protowire.ConsumeBytes(b)
		} else {
			n = protowire.ConsumeFieldValue(num, kind, b)
		}
		if n < 0 {
			return invalid("the message is no ModelInferRequest: %v", protowire.ParseError(n))
		}
		b = b[n:]
		if err := f(num, kind, value); err != nil {
			return err
		}
	}
	return nil
}

// intercept stands before every call: the time limit, and what is counted.
func (s *Server) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (reply any, err error) {
	x := ctx.Value(exchangeKey{}).(*exchange)
	if x.taken.Swap(true) {
		return nil, status.Error(codes.Canceled, "the client has gone")
	}
	defer close(x.left)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %v", info.FullMethod, p)
		}
		fault := err
		if err != nil {
			f := classify(err)
			s.count(f)
			err = status.Error(f.grpc, f.message)
		}
		if r, ok := req.(*pb.ModelInferRequest); ok {
			x.c.model = s.known(r.ModelName)
			x.done(x.c, status.Code(err).String(), fault)
		}
		x.writing()
	}()
	if _, ok := req.(*pb.ModelInferRequest); ok {
		leave, err := s.enter(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	return next(ctx, req)
}

// authorize checks the values of Authorization headers.
func (s *Server) authorize(headers []string) error {
	if s.o.Token == "" {
		return nil
	}
	if len(headers) == 1 {
		scheme, token, _ := strings.Cut(headers[0], " ")
		if strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare([]byte(strings.TrimLeft(token, " ")), []byte(s.o.Token)) == 1 {
			return nil
		}
	}
	return fail(kindForbidden, "this server wants a bearer token in the header Authorization")
}

type grpcService struct {
	pb.UnimplementedGRPCInferenceServiceServer
	s *Server
}

func (g *grpcService) ServerLive(context.Context, *pb.ServerLiveRequest) (*pb.ServerLiveResponse, error) {
	return &pb.ServerLiveResponse{Live: true}, nil
}

func (g *grpcService) ServerReady(context.Context, *pb.ServerReadyRequest) (*pb.ServerReadyResponse, error) {
	return &pb.ServerReadyResponse{Ready: g.s.ready()}, nil
}

func (g *grpcService) ModelReady(_ context.Context, r *pb.ModelReadyRequest) (*pb.ModelReadyResponse, error) {
	_, err := g.s.model(r.Name, r.Version) // one that there is not is not ready
	return &pb.ModelReadyResponse{Ready: err == nil && g.s.ready()}, nil
}

func (g *grpcService) ServerMetadata(context.Context, *pb.ServerMetadataRequest) (*pb.ServerMetadataResponse, error) {
	m := g.s.describe()
	return &pb.ServerMetadataResponse{Name: m.Name, Version: m.Version, Extensions: m.Extensions}, nil
}

func (g *grpcService) ModelMetadata(_ context.Context, r *pb.ModelMetadataRequest) (*pb.ModelMetadataResponse, error) {
	found, err := g.s.model(r.Name, r.Version)
	if err != nil {
		return nil, err
	}
	m := found.describe()
	convert := func(t TensorInfo) *pb.ModelMetadataResponse_TensorMetadata {
		return &pb.ModelMetadataResponse_TensorMetadata{Name: t.Name, Datatype: t.Datatype, Shape: t.Shape}
	}
	return &pb.ModelMetadataResponse{Name: m.Name, Versions: m.Versions, Platform: m.Platform, Inputs: lists.Map(m.Inputs, convert), Outputs: lists.Map(m.Outputs, convert)}, nil
}

// contentsOf is the field of contents that has the elements of a datatype.
var contentsOf = map[string]protoreflect.Name{FP32: "fp32_contents", INT64: "int64_contents", BYTES: "bytes_contents"}

// refuseOthers refuses contents of another kind than the datatype's, which nothing reads.
func refuseOthers(c *pb.InferTensorContents, name, datatype string) (err error) {
	want, known := contentsOf[datatype]
	c.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if known && f.Name() != want {
			err = invalid("the input %.60q of the datatype %s has %s: put all its elements into %s", name, datatype, f.Name(), want)
		}
		return err == nil
	})
	return err
}

func (g *grpcService) ModelInfer(ctx context.Context, r *pb.ModelInferRequest) (*pb.ModelInferResponse, error) {
	m, err := g.s.model(r.ModelName, r.ModelVersion)
	if err != nil {
		return nil, err
	}
	c := ctx.Value(exchangeKey{}).(*exchange).c
	req := &Request{ID: r.Id, IdempotencyKey: r.Parameters[idempotencyParameter].GetStringParam(),
		Outputs: lists.Map(r.Outputs, (*pb.ModelInferRequest_InferRequestedOutputTensor).GetName)}
	if given := r.Parameters[idempotencyParameter]; given != nil && req.IdempotencyKey == "" {
		return nil, invalid("the parameter %s is empty, or no text", idempotencyParameter)
	}
	raw := r.RawInputContents
	if len(raw) > 0 && len(raw) != len(r.Inputs) {
		return nil, invalid("%d raw_input_contents for %d inputs: give one for each, or none", len(raw), len(r.Inputs))
	}
	for i, in := range r.Inputs {
		t := Tensor{Name: in.GetName(), Datatype: in.GetDatatype(), Shape: in.GetShape()}
		if len(raw) > 0 {
			if in.GetContents() != nil {
				return nil, invalid("the input %.60q has contents beside raw_input_contents", t.Name)
			}
			if err := t.setBytes(raw[i]); err != nil {
				return nil, err
			}
		} else {
			c := in.GetContents()
			if err := refuseOthers(c, t.Name, t.Datatype); err != nil {
				return nil, err
			}
			t.F32, t.I64 = c.GetFp32Contents(), c.GetInt64Contents()
			t.Text = lists.Map(c.GetBytesContents(), func(b []byte) string { return string(b) })
		}
		req.Inputs = append(req.Inputs, t)
	}
	res, err := g.s.ask(ctx, c, m, req, formats{"": true})
	if err != nil {
		return nil, err
	}
	reply := &pb.ModelInferResponse{ModelName: r.ModelName, ModelVersion: modelVersion, Id: r.Id}
	if res.GraphVersion > 0 {
		reply.Parameters = map[string]*pb.InferParameter{versionParameter: {ParameterChoice: &pb.InferParameter_Int64Param{Int64Param: res.GraphVersion}}}
	}
	for i := range res.Outputs {
		t := &res.Outputs[i]
		reply.Outputs = append(reply.Outputs, &pb.ModelInferResponse_InferOutputTensor{Name: t.Name, Datatype: t.Datatype, Shape: t.Shape})
		reply.RawOutputContents = append(reply.RawOutputContents, t.appendBytes(make([]byte, 0, t.binaryBytes())))
	}
	return reply, nil
}
