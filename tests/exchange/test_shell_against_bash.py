"""Tests that the interpreter of shell scripts calls the same programs as bash, or reports that it cannot.

Each script runs in bash, with a program `note` that records its words, and in the interpreter.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.exchange.shell.parsing import ShellError
from orchestrator.exchange.shell.script import Shell
from orchestrator.exchange.shell.values import Answer, known

PROGRAMS = {
    "note": '#!/bin/bash\n[ $# -eq 0 ] || printf -v line "%s\\x1f" "$@"\necho "$line" >> "$NOTES"\n',
    "hostname": "#!/bin/sh\necho r1\n",
    "uname": "#!/bin/sh\necho r1\n",
}
# Scripts, one per line; a here-document or a file continues to the line of its end.
SCRIPTS = r"""
i=0; let i=i+1; note $i
i=1; let "i += 2"; note $i
declare -i n=3; n=n+1; note $n
f() { local i=5; note $i; }; i=1; f; note $i
set -- a b; for x in "$@"; do note $x; done
set -- "a b" c; note $#; for x in "$@"; do note "$x"; done
set -- "a b" c; for x in $@; do note "$x"; done
set -- a b; for x in "$*"; do note "$x"; done
f() { for x in "$@"; do note "$x"; done; }; f "1 2" 3
f() { note "$@"; }; f "1 2" 3
f() { shift; note "$1" $#; }; f 1 2 3
IFS=,; set -- 1,2; note ${1%,*} ${1#*,} a,b $1 "$1"
IFS=.; for i in 1.2 3; do note $i "$i" a.b; done
set -- a b; note p$1q $2st "x$1y" ${2}z
set -- 1 2; note $10 "$20" $(($10 + 1)) $((1$2))
set - a b; note $1 $2
set -- a; set -; note $# $1
note $(expr 2 + 3) $(expr 7 % 4) $(expr 2 \* 3)
expr 1 / 0; note $?
expr 1 - 1; note $?
IFS=,; l=a,b,c; for x in $l; do note $x; done
IFS=. read -r a b c d <<< 10.0.1.2; note $a $b $c $d
l=a:b; IFS=: read x y <<< "$l"; note $x-$y
set -e; false; note no
set -e; if false; then :; fi; false || true; ! true; note yes
set -e; false && true; note yes
set -e; (false); note no
exec note a; note b
exec 2>/dev/null; note a
trap 'note bye' EXIT; note a
case a in a) note 1;& b) note 2;; c) note 3;; esac
case a in a) note 1;;& a*) note 2;; c) note 3;; esac
x=5; echo $x | while read y; do x=$y; note $y; done; note $x
while read -r a b; do note $a $b; done <<EOF1
1 2
3 4 5
EOF1
printf 'a b\nc d\n' | while read -r x y; do note "$x" "$y"; done
while IFS=, read -r x y; do note "$x" "$y"; done <<< "1,2"
for i in $(echo 1 2 3); do [ $i = 2 ] && continue; note $i; done
for i in 1 2; do for j in a b; do note $i$j; break 2; done; done
for i in 1 2; do for j in a b; do continue 2; done; note $i; done
a=(x y z); for i in "${a[@]}"; do note $i; done
a=(x y z); note ${a[1]} ${#a[@]}
declare -A m; m[a]=1; note ${m[a]}
x=abc; note ${x:1:1} ${x: -1} ${x/b/Z} ${x^^}
x=10.0.0.1/24; note ${x%/*} ${x#*/} ${x%%.*} ${x##*.}
note ${x:-def} ${y:=q} $y
x=a; note ${x:+set}
v=x; x=3; note ${!v}
note {1..3} a{b,c}d
note "{1..3}"
x=3; for i in {1..$x}; do note $i; done
for ((i=0;i<3;i++)); do note $i; done
for ((i=0,j=5;i<2;i++,j--)); do note $i $j; done
i=0; until [ $i -ge 2 ]; do note $i; i=$((i+1)); done
i=5; ((i--)); ((i>3)) && note big; note $i
((i=2)); note $i; (( i += 3 )); note $i
i=0; ((i++)) || note zero
if [[ abc =~ ^a ]]; then note m; fi
if [[ abc == a* && ! -z x ]]; then note m; fi
[[ a < b ]] && note lt
[ -z "" -a -n "x" ] && note ok
[ ! -z "" ] || note ok
[ "a b" = "a b" ] && note ok
test 1 -lt 2 -o 2 -lt 1 && note ok
x="a  b"; note $x; note "$x"
x='$y'; y=1; note $x; eval note $x
note 'a'"b"c\ d
note $'a\tb'
note `echo hi`
note $(echo $(echo nested))
note $(( (1+2)*3 )) $((2**3))
x=$(false); note $?
x=$(echo a; exit 3); note $x $?
false; note $?
(exit 3); note $?
f() { return 2; }; f; note $?
! true; note $?
true | false; note $?
{ note a; note b; }
(x=2; note $x); note ${x-unset}
note a & wait; note b
note a; # note b
: <<'X'
note no
X
if true; then note a; elif note b; then note c; else note d; fi
if false; then note a; elif true; then note c; else note d; fi
false || { note a; false; } || note b
true && false || note c
note a || note b && note c
f () { note f $1; }; function g { note g; }; f 1; g
unset -f f; f() { note x; }; unset -f f; note after
x=1 note a; note ${x-unset}
x=1; x=2 sh -c 'note $x'; note $x
export A=7; sh -c 'note $A'
B=7; sh -c 'note ${B-none}'
sh -c 'note $0 $1' zero one
bash -c 'for i in 1 2; do note $i; done'
echo 'note from file' > f.sh; sh f.sh
echo 'note from $1' > f.sh; sh f.sh arg
echo 'x=5' > f.sh; . ./f.sh; note $x
echo 'x=5' > f.sh; source ./f.sh; note $x
echo 'note $1' > f.sh; chmod +x f.sh; ./f.sh hello
cat > f.sh <<'X'
note "$1"
exit 4
X
bash f.sh q; note $?
cat <<X > out
a $HOSTNAME
X
while read l; do note $l; done < out
x=$(cat <<X
hi
X
); note $x
note $(seq 1 2 5) ; note $(seq 3 -1 1)
note $(echo a.b.c | cut -d. -f2) $(echo abc | tr a-c A-C)
note $(echo abc | sed s/b/X/)
note $(echo a b c | awk '{print $2}')
note $(expr 1 + 2)
note $(hostname) $(hostname -s) $HOSTNAME $(uname -n)
note $(echo $HOSTNAME | grep -o '[0-9]*')
note $(printf '%02d' 7) $(printf '%s-%s' a b)
note $(printf '%s\n' a b)
printf -v x '%s' hello; note $x
read x < <(echo hi); note $x
mapfile -t arr <<< "a"; note ${arr[0]}
select x in a; do break; done < /dev/null; note end
getopts ab: o -a; note $o
alias n=note; note a
n=note; $n dynamic
set -- 1 2 3; note $1 ${2} $# ; shift 2; note $1
set -- $(echo a b); note $2
note ${@:-none}
x=; note "$x" end; note $x end
note "" a
x="note a"; $x
command note a; builtin echo; env note b; nohup note c; time note d
command -v note >/dev/null && note have
type note >/dev/null 2>&1 && note have
[ -d /nonexistent ] || note none
if [ -f missing ]; then note a; fi; note b
test -e missing && note x
for f in *.none; do note "$f"; done
timeout 5 note a
xargs note < /dev/null
echo 1 2 | xargs note
echo a | tee o >/dev/null; note $(cat o)
exit_here() { exit 0; }; note a; exit_here; note b
return 2>/dev/null; note b
while true; do note a; break; done; note b
while :; do i=$((i+1)); [ $i -gt 2 ] && break; note $i; done
until false; do note a; break; done
x=0; while [ $x -lt 3 ]; do x=$((x+1)); [ $x -eq 2 ] && continue; note $x; done
case $HOSTNAME in r1|r2) note r;; *) note o;; esac
case "x y" in "x y") note q;; esac
case abc in a?c) note q;; esac
case abc in [!a]*) note n;; *) note o;; esac
case $(hostname) in r[0-9]) note d ;; esac
if [ "$(hostname)" == "r1" ]; then note e; fi
[ r1 = $(hostname) ] && { note 1; note 2; }
if [ "${HOSTNAME:0:1}" = r ] && [ ${HOSTNAME:1} -eq 1 ]; then note y; fi
if ! [ 1 = 2 ]; then note n; fi
if [ 1 = 1 ] || false; then note n; fi
N=$(echo $HOSTNAME | tr -dc 0-9); note $((N*10))
note 10.0.$((${HOSTNAME#r}+1)).1
x=08; note $((10#$x))
note $((0x10)) $((1<<3)) $((5>3?1:2))
x=5; note $((x++)) $x
x=a,b; IFS=,; set -- $x; note $2
old=$IFS; IFS=:; x=1:2; for i in $x; do note $i; done; IFS=$old; y="3 4"; for i in $y; do note $i; done
readonly R=3; note $R
x=1; x+=2; note $x
f() { x=in; }; x=out; f; note $x
f() { echo out; }; note $(f)
f() { note $FUNCNAME; }; note a
f() { if [ $1 -gt 0 ]; then note $1; f $(($1-1)); fi; }; f 3
note a > /dev/null 2>&1
note a 2>&1 | cat
note x | cat; note y
{ echo a; echo b; } | while read l; do note $l; done
(note a; exit 1) || note b
if (false); then note a; else note b; fi
f() { false; }; if f; then note a; else note b; fi
[ ]; note $?
[ x ]; note $?
test; note $?
true; note $? ; note ${?}
let x=0; note $?
(( 0 )); note $?
x=$((1 > 2)); note $x
for i; do note $i; done
set -- p q; for i; do note $i; done
for i in; do note $i; done; note z
note a;note b
{ note a; }; note b
!  false && note z
echo "note a" | sh
bash <<X
note inner
X
sh -c "note one; note two" && note three
sh -ec 'false; note no'; note $?
cat /etc/hostname >/dev/null; note a
sleep 0 && note a
sleep 0; note a
unset x; note ${x-unset}
x=1; unset x; note ${x-unset}
x=abc; case $x in *b*) note has;; esac
x="a*"; [ "$x" = "a*" ] && note literal
[[ "a*" == a\* ]] && note lit
x=3; [[ $x -gt 2 ]] && note gt
[[ -n $x ]] || note empty
[[ ! ( a == b ) ]] && note par
note "$(echo "q w")"
note $(echo "q w")
note a=b --c="d e"
x=(1 2); x+=(3); note ${x[*]}
for x in "a b" c; do note "$x"; done
note $# $@
hash note; note a
echo hi | read x; note ${x-unset}
set -u; note ${x-ok}
set -o errexit; false; note no
shopt -s nullglob; for f in *.none; do note "$f"; done; note z
until note once; do :; done
if note cond; then note body; fi
while note w; do break; done
""".strip("\n").split("\n")


def scripts() -> list[str]:
    """Returns the scripts of SCRIPTS; one with a here-document has several lines."""
    found: list[str] = []
    end = ""
    for line in SCRIPTS:
        if end:
            found[-1] += line + "\n"
            end = "" if line.strip().partition(";")[0] in (end, f"{end})") else end
            if not end and line.startswith("done"):
                end = ""
            continue
        if "<<" in line and "<<<" not in line and "1<<" not in line:
            end = line.split("<<")[1].split(";")[0].split()[0].strip("'")
        if found and line.startswith(("while read l; do note $l; done < out", "bash f.sh q", "); note $x")):
            found[-1] += line + "\n"
        else:
            found.append(line + "\n")
    return found


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bin")
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def by_bash(script: str, programs: Path, place: Path) -> list[tuple[str, ...]]:
    notes = place / "notes"
    notes.write_text("")
    (place / "work").mkdir()
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOSTNAME": "r1", "NOTES": str(notes)}
    subprocess.run(
        ["bash", "-c", script, "sh"], cwd=place / "work", env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, timeout=20, check=False,
    )  # fmt: skip
    return sorted(tuple(line.split("\x1f")[:-1]) for line in notes.read_text().splitlines())


def by_interpreter(script: str) -> tuple[list[tuple[str, ...]], list[str]]:
    """Returns the words of each `note`, and the reports of what is not known."""
    notes: list[tuple[str, ...]] = []
    said: list[str] = []

    def act(words: Sequence[str], _line: int, _stdin: str) -> Answer | None:
        if words[0] == "note":
            notes.append(tuple(words[1:]))
            return Answer()
        said.append(" ".join(words))
        return None

    shell = Shell(act, lambda _line, words: said.append(" ".join(words)), {"HOSTNAME": "r1"}, {})
    try:
        shell.run(script, ["sh"])
    except ShellError as error:
        said.append(error.rule)
    said += [word for note in notes for word in note if not known(word)]
    return sorted(notes), said


# Scripts whose commands stand in the line of a here-document, or read what is piped into a group.
BLOCKS = (
    "cat <<'E' | while read l; do note \"$l\"; done\na $x\nE\n",
    "cat <<E | tr a b | while read l; do note $l; done\na\nE\n",
    "cat <<E && note yes\nq\nE\nnote z\n", "cat <<E || note no\nq\nE\nnote z\n",
    "false <<E || note or\nq\nE\n", "echo v | sh -c 'read x; note $x'\n", "echo v | eval 'read x; note $x'\n",
    "cat <<E > f && note f\nq\nE\nwhile read l; do note $l; done < f\n",
    "echo a:b | (IFS=: read x y; note $x $y)\n", "printf '1\\n2\\n' | { read a; read b; note $a $b; }\n",
    "echo q | { cat | while read l; do note $l; done; }\n", "f() { read x; note $x; }; echo v | f\n",
    "echo 'note in' | { sh; }\n", "echo a | if read x; then note $x; fi\n",
    "for i in {1..2} {a..c} {c..a}; do note $i; done\n", "for i in {01..03} {8..010}; do note $i; done\n",
    "f() { note $FUNCNAME; }; f\n", 'set -- ""; note $# "$1" "$@"\n', 'set --; note $# "$@" a\n',
    "note $EUID $LINENO $SHLVL\n", "[[ ab =~ a(b) ]] && note ${BASH_REMATCH[1]}\n",
    "case '*' in '*') note star;; esac; case ab in 'a*') note no;; a*) note yes;; esac\n",
    'for l in "a b" "c d"; do set -- $l; note $1/$2 10.$1.$2.0; done\n', "note `echo \\`echo deep\\``\n",
    "note \"${x:-'q w'}\" ${x:-'q w'} ${x:-\"q w\"}\n", "note a{1,2}b c{d,e{f,g}}h $y{5,6} a=~\n",
    "set -o pipefail; false | true; note $?; set +o pipefail; false | true; note $?\n",
    "trap 'note t$?' EXIT; (exit 3); false; exit 7\n", "x='*'; case ab in $x) note glob;; esac\n",
    "x=aXbXc; note ${x/#a/Z} ${x/%c/Z} ${x/#q/Z} ${x/%q/Z}\n",
    "note $(basename /a/b.c .c) $(basename /a/b/) $(basename c c)\n",
)  # fmt: skip


@pytest.mark.parametrize("script", [*scripts(), *BLOCKS])
def test_bash_calls_the_same(script: str, programs: Path, tmp_path: Path) -> None:
    notes, said = by_interpreter(script)
    assert said or notes == by_bash(script, programs, tmp_path)


def test_most_scripts_are_followed_to_their_end() -> None:
    assert sum(not by_interpreter(script)[1] for script in scripts()) > 130


LEAVES = (
    "note $i",
    "note a $x",
    "x=$((x+1))",
    "false",
    "true",
    "[ $x -gt 1 ]",
    "x=$(echo $i)",
    "return 1",
    "note $(f)",
)
SHAPES = (
    "if {}; then {}; else {}; fi", "for i in 1 2; do {}; {}; done", "{} && {} || {}", "{}; {}", "( {}; {} )",
    "f() {{ {}; {}; }}; f", "! {} || {}", "while [ $x -lt 2 ]; do x=$((x+1)); {}; done", "{{ {}; }} && {}",
    "case $i in 1) {};; *) {};; esac", "f() {{ local x=7; {}; }}; f; {}", "for i in 1 2; do {}; break; done",
    "sh -c 'x=0; note c; {}'", "set -e; {}",
)  # fmt: skip


def made(chance: random.Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(LEAVES)
    shape = chance.choice(SHAPES)
    parts = [made(chance, depth - 1) for _ in range(shape.replace("{{", "").count("{}"))]
    if shape.startswith("sh -c"):
        parts = [part.replace("'", "") if "sh -c" not in part else "true" for part in parts]
    return shape.format(*parts)


def test_bash_calls_the_same_of_scripts_made_by_chance(programs: Path, tmp_path: Path) -> None:
    chance = random.Random(44)
    for number in range(60):
        script = f"x=0; i=0; f() {{ echo out; }}; {made(chance, 3)}; note end $x $?\n"
        place = tmp_path / str(number)
        place.mkdir()
        notes, said = by_interpreter(script)
        assert said or notes == by_bash(script, programs, place), script
