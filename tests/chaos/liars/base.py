"""Makes the run that the liars falsify: small, in virtual time, with datagrams, requests, a transfer and a
broker.
"""

from __future__ import annotations

LAB = """\
name: truth
seed: 1
segments:
  l: {subnet: 10.5.0.0/24}
  m: {subnet: 10.6.0.0/24}
nodes:
  a: {segment: l, software: {q: {udp: {to: b, push: {rate: 100 /s, size: 300 B}}}}}
  b: {segment: m, software: {q: {udp: {listen: 7000}}, k: {bulk: {listen: 5201}}}}
  c: {software: {q: {udp: {to: d, push: {rate: 30 /s, size: 500 B}}}}}
  d: {software: {q: {udp: {listen: 7000}}}}
  e: {segment: l, software: {q: {udp: {to: f, push: {rate: 100 /s, size: 300 B}}}}}
  f: {segment: l, software: {q: {udp: {listen: 7000}}}}
  g: {segment: m, software: {q: {udp: {to: b, request: {rate: 20 /s, size: 100 B, reply: 400 B}}}}}
  k: {segment: m, software: {mosquitto: {broker: mosquitto}}}
  r: {segment: l, forward: true}
  s: {segment: m, forward: true}
  x: {segment: m, software: {t: {bulk: {to: b, congestion: reno, volume: 750 kB, class: bulk}}}}
  mouth:
    segment: m
    software: {m: {mqtt: {broker: k, publish: {topic: t, qos: 1, rate: 20 /s, rate_of: client}}}}
  ear: {segment: m, software: {m: {mqtt: {broker: k, subscribe: [{topic: t, qos: 1}]}}}}
  ear2: {segment: m, software: {m: {mqtt: {broker: k, subscribe: [{topic: t, qos: 0}]}}}}
links:
  rs: {between: [r, s], both: {delay: 30 ms, rate: 50 Mbit/s, loss: 5 %}}
  p: {between: [c, d], both: {delay: 10 ms, rate: 10 Mbit/s}}
  acc: {between: [b, m], forward: {delay: 5 ms}, reverse: {rate: 1 Mbit/s, delay: 5 ms, limit: 20}}
  way: {between: [k, m], both: {delay: 5 ms}}
captures:
  rs: {at: link rs}
  b: {at: node b}
  l: {at: segment l}
timeline:
  - {at: hold + 6 s, impair: rs, both: {delay: 40 ms, rate: 50 Mbit/s, loss: 5 %}}
run: {hold: 12 s, drain: 3 s}
"""
