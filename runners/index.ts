import type { Runner } from '../src/harness/runner.ts';
import { acp } from './acp/runner.ts';
import { aider } from './aider/runner.ts';
import { bash } from './bash/runner.ts';
import { claudeCode } from './claude-code/runner.ts';
import { cline } from './cline/runner.ts';
import { codex } from './codex/runner.ts';
import { command } from './command/runner.ts';
import { copilot } from './copilot/runner.ts';
import { gemini } from './gemini-cli/runner.ts';
import { kimi } from './kimi/runner.ts';
import { miniSweAgent } from './mini-swe-agent/runner.ts';
import { opencode } from './opencode/runner.ts';
import { openhands } from './openhands/runner.ts';
import { pi } from './pi/runner.ts';
import { qwenCode } from './qwen-code/runner.ts';

/**
 * All harnesses of Offsite. To add one:
 *
 * 1. `versions.ts`: the package, its version and its program; `script` only if the CLI does not work without
 *    its install script. For PyPI also the Debian release whose Python it needs, and its lock, which `node
 *    scripts/lock-python.ts NAME` writes.
 * 2. `NAME/runner.ts`: `cliRunner`, which says how the CLI is started, and below it a function from a
 *    `TurnRecord` to a `LineTaker`, which puts each line of the CLI's stream into the record. Parse each
 *    known type of line with zod: throw at an unknown shape, skip an unknown type. Leave out what the CLI
 *    does not report; never guess an exit code. A CLI in Python that prints no stream gets a `driver.py` that
 *    calls it and prints lines for `src/harness/driver-lines.ts`. Its install writes only to /offsite/cli.
 * 3. A line below, and in `streams.ts` if it has a stream.
 * 4. `test/runners/NAME.long.test.ts` runs the real CLI in sealed sandboxes with `conformance(runner, …)`;
 *    `test/runners/fixtures/NAME/` has streams that it printed, which `recorded-streams.ts` names. Then
 *    `WRITE_MATRIX=1 npm test -- test/runners/matrix.long.test.ts` writes docs/reference/harnesses.md.
 *
 * To raise a version, change it in `versions.ts`, lock the packages of a CLI from PyPI anew, and run the
 * tests of the runner. Then record again: `node test/runners/record-streams.ts NAME`, and
 * `record-requests.ts`.
 */
export const runners: readonly Runner[] = [
  command,
  acp,
  bash,
  claudeCode,
  cline,
  codex,
  copilot,
  gemini,
  kimi,
  opencode,
  pi,
  qwenCode,
  miniSweAgent,
  aider,
  openhands,
];
