import type { StreamReader } from '../src/harness/cli-stream.ts';
import { claudeCodeLines } from './claude-code/stream.ts';
import { clineStream } from './cline/stream.ts';
import { codexLines } from './codex/stream.ts';
import { copilotStream } from './copilot/stream.ts';
import { geminiStream } from './gemini-cli/stream.ts';
import { opencodeLines } from './opencode/stream.ts';
import { piStream } from './pi/stream.ts';
import { qwenCodeStream } from './qwen-code/stream.ts';

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
