import { mkdirSync, writeFileSync } from 'node:fs';
import { claudeCode } from '../../runners/claude-code/runner.ts';
import { cline } from '../../runners/cline/runner.ts';
import { codex } from '../../runners/codex/runner.ts';
import { copilot } from '../../runners/copilot/runner.ts';
import { gemini } from '../../runners/gemini-cli/runner.ts';
import { miniSweAgent } from '../../runners/mini-swe-agent/runner.ts';
import { opencode } from '../../runners/opencode/runner.ts';
import { pi } from '../../runners/pi/runner.ts';
import { qwenCode } from '../../runners/qwen-code/runner.ts';
import type { ModelTurn } from './model-server.ts';
import { openRunnerBench } from './runner-bench.ts';

/**
 * Records the streams of the CLIs named as arguments, or of all, anew:
 * `node test/runners/record-streams.ts codex`.
 */

const heredoc = "printf 'line1\\nline2\\n' && cat <<'X'\nhe said \"$HOME\" 'x'\nX";

const session: ModelTurn[] = [
  { text: 'I begin.', commands: ['echo said > one'] },
  { commands: ['cat missing'] },
  { commands: ['cat one one'] },
  { text: 'Done.' },
  { commands: ['test -s one'] },
  { text: 'It is still there.' },
];
const refused: ModelTurn[] = [{ commands: ['echo before'] }, { status: 400, message: 'no more' }];
const edges: ModelTurn[] = [
  { commands: ['true'] },
  { commands: ['exit 3'] },
  { commands: ['echo out; echo err >&2; exit 4'] },
  { commands: ['seq 1 12000; exit 5'] },
  { commands: ['echo a', 'echo b; false', "printf 'Command exited with code 9'"] },
  { commands: [heredoc] },
  { calls: [{ name: 'no_such_tool', arguments: { a: 1 } }] },
  { commands: ['cd /tmp'] },
  { text: 'End.' },
];

/** What is asked for in each, and the fixtures that the answers become, turn by turn. */
const recordings: { turns: ModelTurn[]; fixtures: string[] }[] = [
  { turns: session, fixtures: ['session', 'resumed'] },
  { turns: refused, fixtures: ['refused'] },
  { turns: edges, fixtures: ['edges'] },
];

const wanted = process.argv.slice(2);
for (const runner of [claudeCode, cline, codex, copilot, gemini, opencode, pi, qwenCode, miniSweAgent]) {
  if (wanted.length > 0 && !wanted.includes(runner.name)) continue;
  const folder = new URL(`fixtures/${runner.name}/`, import.meta.url);
  mkdirSync(folder, { recursive: true });
  await using bench = await openRunnerBench(runner);
  for (const { turns, fixtures } of recordings) {
    let pieces: Buffer[] = [];
    await using sandbox = await bench.sandbox(turns, {
      onStdout: (bytes) => pieces.push(Buffer.from(bytes)),
    });
    for (const fixture of runner.continues ? fixtures : fixtures.slice(0, 1)) {
      pieces = [];
      await sandbox.session.turn(
        fixture === 'resumed' ? 'Is it there?' : 'Make the file.',
        sandbox.unhurried,
      );
      writeFileSync(new URL(`${fixture}.jsonl`, folder), Buffer.concat(pieces));
    }
  }
}
