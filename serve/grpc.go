package serve

import (
	"context"
	"crypto/subtle"
	"time"

	pb "github.com/gsrc-dev/gsrc/serve/inferencepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// GRPC returns the gRPC side of the server.
func (s *Server) GRPC() *grpc.Server {
	o := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(int(s.o.MaxBody)), grpc.MaxSendMsgSize(1 << 30),
		grpc.UnaryInterceptor(s.intercept), grpc.ConnectionTimeout(s.o.Timeout),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
	}
	if s.tls != nil {
		o = append(o, grpc.Creds(credentials.NewTLS(s.tls)))
	}
	g := grpc.NewServer(o...)
	pb.RegisterGRPCInferenceServiceServer(g, &grpcService{s: s})
	return g
}

// intercept stands before every call: the token, the time limit, and what is counted.
func (s *Server) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (reply any, err error) {
	start := time.Now()
	name := ""
	defer func() {
		if p := recover(); p != nil {
			s.o.Log("%s: %v", info.FullMethod, p)
			err = status.Error(codes.Internal, "internal error")
		}
		if _, ok := req.(*pb.ModelInferRequest); ok {
			s.metrics.request(s.known(name), "grpc", status.Code(err).String(), time.Since(start))
		}
	}()
	open := info.FullMethod == pb.GRPCInferenceService_ServerLive_FullMethodName || info.FullMethod == pb.GRPCInferenceService_ServerReady_FullMethodName
	if !open {
		md, _ := metadata.FromIncomingContext(ctx)
		given := ""
		if list := md.Get("authorization"); len(list) == 1 {
			given = list[0]
		}
		if err := s.authorize(given); err != nil {
			return nil, grpcError(err)
		}
	}
	if r, ok := req.(*pb.ModelInferRequest); ok {
		name = r.ModelName
		leave, err := s.enter()
		if err != nil {
			return nil, grpcError(err)
		}
		defer leave()
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	reply, err = next(ctx, req)
	return reply, grpcError(err)
}

func grpcError(err error) error {
	if err == nil {
		return nil
	}
	f := classify(err)
	return status.Error(f.grpc, f.message)
}

// authorize checks the value of an Authorization header.
func (s *Server) authorize(header string) error {
	if s.o.Token != "" && subtle.ConstantTimeCompare([]byte(header), []byte("Bearer "+s.o.Token)) != 1 {
		return fail(kindForbidden, "this server wants a bearer token in the header Authorization")
	}
	return nil
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
	convert := func(list []TensorInfo) (out []*pb.ModelMetadataResponse_TensorMetadata) {
		for _, t := range list {
			out = append(out, &pb.ModelMetadataResponse_TensorMetadata{Name: t.Name, Datatype: t.Datatype, Shape: t.Shape})
		}
		return out
	}
	return &pb.ModelMetadataResponse{Name: m.Name, Versions: m.Versions, Platform: m.Platform, Inputs: convert(m.Inputs), Outputs: convert(m.Outputs)}, nil
}

func (g *grpcService) ModelInfer(ctx context.Context, r *pb.ModelInferRequest) (*pb.ModelInferResponse, error) {
	m, err := g.s.model(r.ModelName, r.ModelVersion)
	if err != nil {
		return nil, err
	}
	req := &Request{ID: r.Id}
	raw := r.RawInputContents
	if len(raw) > 0 && len(raw) != len(r.Inputs) {
		return nil, invalid("%d raw_input_contents for %d inputs: give one for each, or none", len(raw), len(r.Inputs))
	}
	for i, in := range r.Inputs {
		t := Tensor{Name: in.GetName(), Datatype: in.GetDatatype(), Shape: in.GetShape()}
		if len(raw) > 0 {
			if in.GetContents() != nil {
				return nil, invalid("the input %q has contents beside raw_input_contents", t.Name)
			}
			if err := t.setBytes(raw[i]); err != nil {
				return nil, err
			}
		} else {
			c := in.GetContents()
			t.F32, t.I64 = c.GetFp32Contents(), c.GetInt64Contents()
			for _, b := range c.GetBytesContents() {
				t.Text = append(t.Text, string(b))
			}
		}
		req.Inputs = append(req.Inputs, t)
	}
	for _, out := range r.Outputs {
		req.Outputs = append(req.Outputs, out.GetName())
	}
	res, err := ask(ctx, m, req)
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
		reply.RawOutputContents = append(reply.RawOutputContents, t.appendBytes([]byte{}))
	}
	return reply, nil
}
