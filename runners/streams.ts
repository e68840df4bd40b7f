import type { StreamReader } from '../src/harness/cli-stream.ts';
import { claudeCodeLines } from './claude-code/runner.ts';
import { clineStream } from './cline/runner.ts';
import { codexLines } from './codex/runner.ts';
import { copilotStream } from './copilot/runner.ts';
import { geminiStream } from './gemini-cli/runner.ts';
import { opencodeLines } from './opencode/runner.ts';
import { piStream } from './pi/runner.ts';
import { qwenCodeStream } from './qwen-code/runner.ts';

/**
 * The streams of CLIs that Offsite reads, by the names of their harnesses. A `command` profile may name one
 * (`stream`) if its program prints the same. All of them report the commands that they ran.
 */
export const streams = {
  'claude-code': { takerFor: claudeCodeLines },
  cline: clineStream,
  codex: { takerFor: codexLines },
  copilot: copilotStream,
  'gemini-cli': geminiStream,
  opencode: { takerFor: opencodeLines },
  pi: piStream,
  'qwen-code': qwenCodeStream,
} as const satisfies Record<string, StreamReader>;
