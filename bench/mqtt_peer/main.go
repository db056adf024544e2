// Command mqtt_peer opens many MQTT clients of Eclipse Paho and publishes with each at QoS 1, at a fixed rate.
//
//	mqtt_peer BROKER CLIENTS CONNECTS_PER_S BYTES RATE_PER_CLIENT SECONDS
//
// It prints the number of connected clients, of published and of acknowledged messages as JSON.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
)

func number(at int) float64 {
	value, err := strconv.ParseFloat(os.Args[at], 64)
	if err != nil || value <= 0 {
		fmt.Fprintf(os.Stderr, "mqtt_peer: argument %d: %q is no number above zero\n", at, os.Args[at])
		os.Exit(2)
	}
	return value
}

func main() {
	if len(os.Args) != 7 {
		fmt.Fprintln(os.Stderr, "usage: mqtt_peer BROKER CLIENTS CONNECTS_PER_S BYTES RATE_PER_CLIENT SECONDS")
		os.Exit(2)
	}
	clients, pace := int(number(2)), number(3)
	payload, gap := make([]byte, int(number(4))), time.Duration(1e9/number(5))
	lasts := time.Duration(number(6) * 1e9)
	var connected, published, acknowledged atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for i := 0; i < clients; i++ {
		if wait := time.Until(start.Add(time.Duration(float64(i) / pace * 1e9))); wait > 0 {
			time.Sleep(wait)
		}
		all.Add(1)
		go func() {
			defer all.Done()
			options := mqtt.NewClientOptions().AddBroker("tcp://" + os.Args[1]).SetClientID(fmt.Sprintf("peer-%d", i))
			options.SetKeepAlive(time.Minute).SetAutoReconnect(false).SetConnectTimeout(time.Minute)
			client := mqtt.NewClient(options)
			if token := client.Connect(); token.Wait() && token.Error() != nil {
				fmt.Fprintln(os.Stderr, "mqtt_peer:", token.Error())
				return
			}
			connected.Add(1)
			// Each client begins at a time of its own, so that the load is even.
			time.Sleep(time.Duration(float64(gap) * float64(i) / float64(clients)))
			topic, ticks := fmt.Sprintf("meter/%d", i), time.NewTicker(gap)
			for end := time.Now().Add(lasts); time.Now().Before(end); <-ticks.C {
				published.Add(1)
				if token := client.Publish(topic, 1, false, payload); token.WaitTimeout(time.Minute) && token.Error() == nil {
					acknowledged.Add(1)
				}
			}
			client.Disconnect(250)
		}()
	}
	all.Wait()
	fmt.Printf("{\"connected\": %d, \"published\": %d, \"acknowledged\": %d}\n",
		connected.Load(), published.Load(), acknowledged.Load())
}
