// Sends or takes messages over UDP: both send|take PORT.
package main

import (
	"fmt"
	"net"
	"os"
	"strings"
)

func main() {
	mode, port := os.Args[1], os.Args[2]
	account := OpenAccounting()
	if mode == "send" {
		for message := range account.Due() {
			sent := account.NowNs()
			text := fmt.Sprintf("%d %d ", message.Flow, message.Seq)
			text += strings.Repeat(".", message.Size-len(text))
			for _, peer := range message.To {
				to, err := net.Dial("udp", net.JoinHostPort(peer.Address, port))
				if err == nil {
					to.Write([]byte(text))
					to.Close()
				}
			}
			account.Sent(message, sent)
		}
		return
	}
	here, err := net.ListenPacket("udp4", ":"+port)
	if err != nil {
		panic(err)
	}
	account.Listening()
	fmt.Println("listening")
	for text := make([]byte, 65536); ; {
		size, _, _ := here.ReadFrom(text)
		var flow, seq int
		if found, _ := fmt.Sscanf(string(text[:size]), "%d %d", &flow, &seq); found == 2 {
			account.Received(flow, seq, false)
		}
	}
}
