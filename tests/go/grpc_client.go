// One case of tests/test_grpc_clients.py, by grpc-go: grpc_client TARGET CASE [CA CERT KEY]. Built with the stubs of
// examples/grpc/go.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	pb "portico.example/generate/sglang"
)

const service = "sglang.runtime.v1.SglangService"

type client struct {
	connection *grpc.ClientConn
	sglang     pb.SglangServiceClient
}

var cases = map[string]func(context.Context, client) error{
	"every_rpc":  everyRPC,
	"health":     health,
	"reflection": reflection,
	"large":      func(ctx context.Context, c client) error { return large(ctx, c) },
	"gzip":       func(ctx context.Context, c client) error { return large(ctx, c, grpc.UseCompressor(gzip.Name)) },
	"deadline":   deadline,
	"cancel":     cancel,
	"streams":    streams,
	"drain":      drain,
}

func main() {
	log.SetFlags(0)
	transport := insecure.NewCredentials()
	if len(os.Args) > 3 {
		transport = credentials.NewTLS(tlsConfig(os.Args[3:]))
	}
	connection, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	if err := cases[os.Args[2]](ctx, client{connection, pb.NewSglangServiceClient(connection)}); err != nil {
		log.Fatal(err)
	}
}

func tlsConfig(files []string) *tls.Config {
	authority, err := os.ReadFile(files[0])
	if err != nil {
		log.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(authority)
	if len(files) > 1 {
		own, err := tls.LoadX509KeyPair(files[1], files[2])
		if err != nil {
			log.Fatal(err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config
}

// callEmpty sends an empty message and reads what comes, at most one message of a method that goes on for ever.
func callEmpty(ctx context.Context, c client, method protoreflect.MethodDescriptor) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	name := fmt.Sprintf("/%s/%s", service, method.Name())
	stream, err := c.connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, name)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(dynamicpb.NewMessage(method.Input())); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		err := stream.RecvMsg(dynamicpb.NewMessage(method.Output()))
		if errors.Is(err, io.EOF) || err == nil && method.Name() == "WatchEngineState" {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func everyRPC(ctx context.Context, c client) error {
	methods := pb.File_sglang_runtime_v1_sglang_proto.Services().ByName("SglangService").Methods()
	if methods.Len() != 26 {
		return fmt.Errorf("%d methods", methods.Len())
	}
	allowed := []codes.Code{codes.OK, codes.InvalidArgument, codes.FailedPrecondition}
	for i := range methods.Len() {
		if err := callEmpty(ctx, c, methods.Get(i)); !slices.Contains(allowed, status.Code(err)) {
			return fmt.Errorf("%s: %w", methods.Get(i).Name(), err)
		}
	}
	return nil
}

func health(ctx context.Context, c client) error {
	answer, err := healthpb.NewHealthClient(c.connection).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
	if err == nil && answer.Status != healthpb.HealthCheckResponse_SERVING {
		err = errors.New(answer.Status.String())
	}
	return err
}

func reflection(ctx context.Context, c client) error {
	stream, err := reflectionpb.NewServerReflectionClient(c.connection).ServerReflectionInfo(ctx)
	if err != nil {
		return err
	}
	request := &reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}
	if err := stream.Send(request); err != nil {
		return err
	}
	answer, err := stream.Recv()
	if err != nil {
		return err
	}
	for _, listed := range answer.GetListServicesResponse().GetService() {
		if listed.Name == service {
			return nil
		}
	}
	return errors.New(answer.String())
}

func large(ctx context.Context, c client, options ...grpc.CallOption) error {
	text := strings.Repeat("word ", 2<<20)
	tokens, err := c.sglang.Tokenize(ctx, &pb.TokenizeRequest{Text: text}, options...)
	if err != nil {
		return err
	}
	back, err := c.sglang.Detokenize(ctx, &pb.DetokenizeRequest{Tokens: tokens.Tokens}, options...)
	if err != nil {
		return err
	}
	if tokens.InputText != text || back.Text != text {
		return errors.New("the text came back otherwise")
	}
	return nil
}

// stream reads an answer of so many tokens; `each` may end it.
func (c client) stream(ctx context.Context, tokens int32, each func()) error {
	yes := true
	messages, err := c.sglang.TextGenerate(ctx, &pb.TextGenerateRequest{
		Text:           "hello",
		Stream:         &yes,
		SamplingParams: &pb.SamplingParams{MaxNewTokens: &tokens, IgnoreEos: &yes},
	})
	if err != nil {
		return err
	}
	finished := false
	for {
		message, err := messages.Recv()
		if errors.Is(err, io.EOF) && !finished {
			return errors.New("the stream was cut off")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		finished = message.Finished
		each()
	}
}

func wanted(code codes.Code, err error) error {
	if status.Code(err) != code {
		return fmt.Errorf("ended with %v", err)
	}
	return nil
}

func deadline(ctx context.Context, c client) error {
	ctx, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	return wanted(codes.DeadlineExceeded, c.stream(ctx, 20000, func() {}))
}

func cancel(ctx context.Context, c client) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	return wanted(codes.Canceled, c.stream(ctx, 20000, stop))
}

func streams(ctx context.Context, c client) error {
	failures := make([]error, 1000)
	var all sync.WaitGroup
	for i := range failures {
		all.Go(func() { failures[i] = c.stream(ctx, 8, func() {}) })
	}
	all.Wait()
	return errors.Join(failures...)
}

// The other side begins to drain when it has read "begun".
func drain(ctx context.Context, c client) error {
	var first sync.Once
	return c.stream(ctx, 300, func() { first.Do(func() { fmt.Println("begun") }) })
}
