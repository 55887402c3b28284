// SPDX-License-Identifier: MIT

// probe JSON: see probe.py. net/http as it comes: HTTP/2 where it is offered, the environment's proxy.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	var todo []struct {
		M, U string
		B    *string
	}
	if err := json.Unmarshal([]byte(os.Args[1]), &todo); err != nil {
		panic(err)
	}
	client := &http.Client{Timeout: 15 * time.Second}
	say := json.NewEncoder(os.Stdout)
	for _, r := range todo {
		var body io.Reader
		if r.B != nil {
			body = strings.NewReader(*r.B)
		}
		request, err := http.NewRequest(r.M, r.U, body)
		if err != nil {
			panic(err)
		}
		got, err := client.Do(request)
		if err != nil {
			say.Encode(map[string]any{"error": fmt.Sprint(err)})
			continue
		}
		text, err := io.ReadAll(got.Body)
		got.Body.Close()
		if err != nil {
			say.Encode(map[string]any{"error": fmt.Sprint(err)})
			continue
		}
		var reason any
		if v := got.Header.Get("X-Netpawl-Reason"); v != "" {
			reason = v
		}
		say.Encode(map[string]any{"status": got.StatusCode, "reason": reason, "text": string(text), "len": len(text), "proto": got.Proto})
	}
}
