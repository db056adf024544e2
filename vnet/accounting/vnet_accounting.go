// Accounts for the messages of a program in a vNET lab (docs/accounting.md). Copy this file beside the program.
//
//	account := OpenAccounting()
//	for message := range account.Due() { // each when it is due
//		sent := account.NowNs()
//		...
//		account.Sent(message, sent)
//	}
//
// A receiver calls account.Received(flow, seq, false) for each arrival: put both numbers into the message. The
// standard library only; goroutines may share an Accounting.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"syscall"
	"time"
	"unsafe"
)

// VnetPeer is a receiver of messages.
type VnetPeer struct {
	Endpoint string `json:"endpoint"`
	Address  string `json:"address"`
}

// VnetMessage is a message that is due; Size is in bytes.
type VnetMessage struct {
	Flow, Seq, Size int
	ScheduledNs     int64
	To              []VnetPeer
}

type vnetFlow struct {
	Number  int        `json:"number"`
	Name    string     `json:"name"`
	To      []VnetPeer `json:"to"`
	Payload struct {
		Bytes int `json:"bytes"`
	} `json:"payload"`
	TimesNs *[]int64 `json:"times_ns"`
}

// Accounting holds the messages that this program must send and receive, and writes records of them.
type Accounting struct {
	Endpoint string     `json:"endpoint"`
	T0Ns     *int64     `json:"t0_ns"`
	OffsetNs int64      `json:"clock_offset_ns"`
	Sends    []vnetFlow `json:"sends"`
	records  *os.File
}

func vnetRefuse(text string) {
	fmt.Fprintln(os.Stderr, "vnet_accounting: "+text)
	os.Exit(1)
}

// OpenAccounting reads what vNET states; it ends the program if vNET has not started it with `flows` or
// `receives`.
func OpenAccounting() *Accounting {
	if os.Getenv("VNET_FLOWS") == "" || os.Getenv("VNET_RECORDS") == "" {
		vnetRefuse("no VNET_FLOWS and VNET_RECORDS: the command needs `flows:` or `receives: true`")
	}
	account := &Accounting{}
	account.read()
	records, err := os.OpenFile(os.Getenv("VNET_RECORDS"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		vnetRefuse(err.Error())
	}
	account.records = records
	return account
}

func (a *Accounting) read() {
	text, err := os.ReadFile(os.Getenv("VNET_FLOWS"))
	if err == nil {
		err = json.Unmarshal(text, a)
	}
	if err != nil {
		vnetRefuse(err.Error())
	}
}

// NowNs returns the lab's time in Unix nanoseconds. The standard library gives no monotonic time as a number.
func (a *Accounting) NowNs() int64 {
	const clockMonotonic = 1
	var now syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano() + a.OffsetNs
}

// Begin waits until vNET states when the scenario starts, and returns that time.
func (a *Accounting) Begin() int64 {
	for a.T0Ns == nil {
		time.Sleep(10 * time.Millisecond)
		a.read()
	}
	return *a.T0Ns
}

// Due yields each message of all flows when it is due, in the order of those times.
func (a *Accounting) Due() <-chan VnetMessage {
	t0, all, out := a.Begin(), []VnetMessage{}, make(chan VnetMessage)
	for _, flow := range a.Sends {
		if flow.TimesNs == nil {
			vnetRefuse(flow.Name + " has no list of times: it has more than 10,000 messages")
		}
		for seq, at := range *flow.TimesNs {
			all = append(all, VnetMessage{flow.Number, seq, flow.Payload.Bytes, t0 + at, flow.To})
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].ScheduledNs < all[j].ScheduledNs })
	go func() {
		for _, message := range all {
			time.Sleep(time.Duration(message.ScheduledNs - a.NowNs()))
			out <- message
		}
		close(out)
	}()
	return out
}

// Sent records a message that was sent, and whose arrival the protocol does not confirm.
func (a *Accounting) Sent(m VnetMessage, sentNs int64) { a.outcome(m, sentNs, 0, 1, "sent") }

// Settled records a message that was acknowledged, or a request whose replies have all arrived.
func (a *Accounting) Settled(m VnetMessage, sentNs, settledNs int64, attempts int) {
	a.outcome(m, sentNs, settledNs, attempts, "settled")
}

// Unsettled records a message that was sent, and whose acknowledgement or reply did not come.
func (a *Accounting) Unsettled(m VnetMessage, sentNs int64, attempts int) {
	a.outcome(m, sentNs, 0, attempts, "unsettled")
}

// Unsent records a message that was never sent.
func (a *Accounting) Unsent(m VnetMessage) { a.outcome(m, 0, 0, 0, "unsent") }

func (a *Accounting) outcome(m VnetMessage, sentNs, settledNs int64, attempts int, outcome string) {
	if sentNs != 0 {
		sentNs = max(sentNs, m.ScheduledNs)
	}
	a.write("S,%d,%d,%d,%d,%d,%d,%d,%s\n", m.Flow, m.Seq, m.Size, m.ScheduledNs, sentNs, settledNs, attempts, outcome)
}

// Received records an arrival at this program, now; isCopy: the protocol marks it as a repetition.
func (a *Accounting) Received(flow, seq int, isCopy bool) {
	marked := 0
	if isCopy {
		marked = 1
	}
	a.write("R,%d,%d,%s,0,%d,%d\n", flow, seq, a.Endpoint, a.NowNs(), marked)
}

// Replied records the arrival of the reply of an endpoint to a request of this program, now.
func (a *Accounting) Replied(flow, seq int, receiver string) {
	a.write("R,%d,%d,%s,1,%d,0\n", flow, seq, receiver, a.NowNs())
}

// Listening records that this program takes messages from now on.
func (a *Accounting) Listening() { a.write("C,%s,listening,%d,\n", a.Endpoint, a.NowNs()) }

func (a *Accounting) write(form string, values ...any) {
	if _, err := a.records.WriteString(fmt.Sprintf(form, values...)); err != nil {
		vnetRefuse(err.Error())
	}
}
