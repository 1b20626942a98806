// Streams an answer over gRPC: go run . [HOST:PORT] [PROMPT]
//
// The stubs are generated into ./sglang first; see ../README.md. With a key in PORTICO_API_KEY it
// is sent along.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	pb "portico.example/generate/sglang"
)

// grpc-go refuses messages above 4 MiB unless it is told otherwise; the server's own limit is
// 64 MiB.
const maxMessage = 64 << 20

// TextGenerate takes the text as it is, without a chat template; ChatComplete takes messages.
const defaultPrompt = "<|im_start|>user\nWhat is 7 plus 5?<|im_end|>\n<|im_start|>assistant\n"

func main() {
	log.SetFlags(0)
	target, prompt := "127.0.0.1:30000", defaultPrompt
	if len(os.Args) > 1 {
		target = os.Args[1]
	}
	if len(os.Args) > 2 {
		prompt = os.Args[2]
	}
	connection, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	if err := generate(pb.NewSglangServiceClient(connection), prompt); err != nil {
		log.Fatal(err)
	}
}

func generate(client pb.SglangServiceClient, prompt string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if key := os.Getenv("PORTICO_API_KEY"); key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+key)
	}
	temperature, limit, stream := float32(0), int32(32), true
	messages, err := client.TextGenerate(ctx, &pb.TextGenerateRequest{
		Text:           prompt,
		SamplingParams: &pb.SamplingParams{Temperature: &temperature, MaxNewTokens: &limit},
		Stream:         &stream,
	})
	if err != nil {
		return err
	}
	for {
		// Each message has the text that is new since the last one; the last has Finished set.
		message, err := messages.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Print(message.Text)
		if message.Finished {
			fmt.Println("\nfinish_reason:", message.MetaInfo["finish_reason"])
		}
	}
}
