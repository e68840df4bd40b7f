/**
 * `command`: the agent is its script. `cli`: the script prints the stream of a harness that reports its turn
 * in lines of JSON.
 */
export type Variant = 'command' | 'cli';
export const variants: readonly Variant[] = ['command', 'cli'];

/** What one trial of the hostile measurement does. */
export interface MeasuredCase {
  id: string;
  /** Whether it must pass. The others only have to end. */
  isHonest: boolean;
  variant: Variant;
  agent: string;
  validator?: string;
}

const python = (script: string) =>
  `PYTHONPATH=/opt/agents python3 - <<'END' || exit 1\nfrom hostile import *\n${script}\nEND`;
const command = (id: string, agent: string): MeasuredCase => ({
  id,
  isHonest: false,
  variant: 'command',
  agent,
});
/** The lines of a script. */
function lines(...script: string[]): string {
  return script.join('\n');
}

const cli = (id: string, agent: string): MeasuredCase => ({ id, isHonest: false, variant: 'cli', agent });

/**
 * Lines of pi's stream around what a trial prints between them. Its model gets one request, because without
 * one the harness would count as broken.
 */
const begin = lines(
  python('ask("brief")'),
  `printf '%s\\n' '{"type":"session","id":"one"}' '{"type":"agent_start"}'`,
);
const usage = '"usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0},"stopReason":"stop","timestamp":1';
const said = (text: string) =>
  `{"type":"message_end","message":{"role":"assistant","content":` +
  `[{"type":"text","text":"${text}"}],${usage}}}`;
const end = `printf '%s\\n' '${said('done')}' '{"type":"agent_end"}'`;
const [beforeText, afterText] = said('|').split('|');
const tool = (at: string) =>
  `{"type":"tool_execution_start","toolCallId":"${at}","toolName":"edit","args":{"text":"`;

const hostile: readonly MeasuredCase[] = [
  command(
    'large-requests',
    python(`body = question("x" * 30 * 2**20, False).encode()\ntogether(40, send, body, times=3)`),
  ),
  command(
    'requests-of-values',
    python(
      lines(
        `body = b'{"model":"model","messages":[' + b"[]," * 4 * 2**20 + b"[]]}"`,
        'together(40, send, body, times=2)',
      ),
    ),
  ),
  command('answers-unread', python('together(100, ask, "endless", stream=True, read=False)')),
  command('endless-streams', python('together(40, ask, "endless", stream=True)')),
  command('huge-answers', python('together(30, ask, "huge")')),
  command('huge-answers-unread', python('together(60, ask, "huge", read=False)')),
  command('large-events', python('together(30, ask, "event", stream=True)')),
  command('crumbs', python('together(60, ask, "crumbs", stream=True)')),
  command('slow-drips', python('together(100, ask, "drip", stream=True)')),
  command('deep-answers', python('together(30, ask, "deep")')),
  command('answers-of-values', python('together(30, ask, "values")')),
  command('prints-500-MB', "head -c 500M /dev/zero | tr '\\0' x\nhead -c 500M /dev/zero | tr '\\0' x >&2"),
  command('100000-files', `python3 -c "for n in range(100000): open(f'file-{n}', 'w').close()"`),
  command(
    '100000-long-paths',
    // The longest possible paths: 20 folders of 5,000 files.
    `python3 - <<'END'
import os
long = "/".join(["x" * 250] * 14)
for folder in range(20):
    place = f"{long}/{folder}"
    os.makedirs(place)
    os.chdir(place)
    for number in range(5000): open("y" * 240 + str(number), "w").close()
    os.chdir("/workspace")
END`,
  ),
  command(
    'long-command-lines',
    // Each has two megabytes of arguments, and the engine's list of processes contains them all.
    `python3 - <<'END'
import subprocess
for _ in range(150): subprocess.Popen(["sleep", "60"] + ["x" * 120_000] * 16, start_new_session=True)
END`,
  ),
  {
    ...command('report-of-values', 'true'),
    validator: lines(
      '#!/bin/sh',
      `printf '{"results":{"tests":['`,
      `yes '[],' | head -n 2000000 | tr -d '\\n'`,
      `printf '[]]}}'`,
      '',
    ),
  },
  cli(
    'line-of-20-MB',
    `${begin}\nprintf '%s' '${beforeText}'\nhead -c 20M /dev/zero | tr '\\0' x\necho '${afterText}'\n${end}`,
  ),
  cli(
    'line-of-values',
    lines(
      begin,
      `printf '{"type":"message_update2","all":['`,
      `yes '[],' | head -n 7000000 | tr -d '\\n'`,
      `echo '[]]}'`,
      end,
    ),
  ),
  cli('line-without-end', `${begin}\nhead -c 300M /dev/zero | tr '\\0' '{'`),
  cli(
    'many-messages',
    lines(
      begin,
      `head -c 1000000 /dev/zero | tr '\\0' x > /tmp/text`,
      `for n in $(seq 600); do printf '%s' '${beforeText}'; cat /tmp/text; echo '${afterText}'; done`,
      end,
    ),
  ),
  cli(
    'many-tools',
    lines(
      begin,
      `head -c 1000000 /dev/zero | tr '\\0' x > /tmp/text`,
      `for n in $(seq 600); do printf '%s' '${tool('0')}'; cat /tmp/text; echo '"}}'; done`,
      end,
    ),
  ),
  cli('million-short-messages', `${begin}\nyes '${said('x')}' | head -n 1000000\n${end}`),
];

/** What an honest agent prints and does: it needs answers from its model, and leaves a file. */
const honestAgent = {
  command: `${python('honest()')}\necho done > done.txt`,
  cli: `${begin}\n${python('honest()')}\necho done > done.txt\n${end}`,
};

/**
 * Hostile trials of a variant, with an honest one before every second of them; `isQuick` selects a part of
 * them.
 */
export function measuredCases(variant: Variant, isQuick: boolean): MeasuredCase[] {
  const all = hostile.filter((one) => one.variant === variant);
  const chosen = isQuick ? all.filter((_, index) => index % 4 === 0) : all;
  const honest = (number: number): MeasuredCase => ({
    id: `honest-${number}`,
    isHonest: true,
    variant,
    agent: honestAgent[variant],
  });
  return chosen.flatMap((one, index) => (index % 2 === 0 ? [honest(index / 2 + 1), one] : [one]));
}
