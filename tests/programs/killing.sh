# What is left of a program's output when its ranks are killed. To be sourced, after checks.sh.

# Whether a rank of a launcher has a file open to write: one without a name, or with another one.
writing() {
  compgen -G '.farside-*.part' >/dev/null && return
  local pid
  for pid in $(pgrep -P "$1"); do readlink "/proc/$pid/fd/"* 2>/dev/null; done | grep -q "^$PWD/.*(deleted)$"
}

# leaves_nothing PROGRAM ARGUMENTS...: of its outputs, called killed*, if ranks are killed in the middle: one, or all.
leaves_nothing() {
  local attempt launcher victims killed=0
  for attempt in 1 2 3 all; do
    "$farside" "$1" -n 3 "${@:2}" >"$work/out" 2>"$work/err" &
    launcher=$!
    until writing $launcher || ! kill -0 $launcher 2>/dev/null; do sleep 0.005; done
    victims=$(pgrep -P $launcher)
    [ $attempt != all ] && victims=$(echo "$victims" | sed -n "${attempt}p")
    [ -n "$victims" ] && kill -9 $victims 2>/dev/null
    wait $launcher
    status=$?
    if [ $status != 0 ]; then
      killed=$((killed + 1))
      if compgen -G 'killed*' >/dev/null; then fail "$1: a rank was killed: there is an output"; fi
      if compgen -G '.farside*' >/dev/null; then fail "$1: a rank was killed: left behind: $(echo .farside*)"; fi
    fi
    rm -f killed* .farside-*
  done
  if [ $killed -gt 0 ]; then pass "$1: killed $killed times, no output"; else fail "$1: no rank could be killed in time"; fi
}
