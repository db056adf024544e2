// Serves HTTP on port 9000, or asks a server 4 x 25 times from four goroutines, as its argument says.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) })
		fmt.Println("listening")
		panic(http.ListenAndServe(":9000", nil))
	}
	var all sync.WaitGroup
	right := make([]int, 4)
	for one := range right {
		all.Add(1)
		go func() {
			defer all.Done()
			for number := range 25 {
				path := fmt.Sprintf("/%d/%d", one, number)
				answer, err := http.Get("http://" + os.Args[1] + ":9000" + path)
				if err != nil {
					panic(err)
				}
				body, _ := io.ReadAll(answer.Body)
				answer.Body.Close()
				if string(body) == path {
					right[one]++
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
	}
	all.Wait()
	fmt.Println("right", right[0]+right[1]+right[2]+right[3])
}
