import type { StreamReader } from '../src/harness/cli-stream.ts';
import { claudeCode } from './claude-code/runner.ts';
import { cline } from './cline/runner.ts';
import { codex } from './codex/runner.ts';
import { copilot } from './copilot/runner.ts';
import { gemini } from './gemini-cli/runner.ts';
import { opencode } from './opencode/runner.ts';
import { pi } from './pi/runner.ts';
import { qwenCode } from './qwen-code/runner.ts';

/**
 * The streams of CLIs that Offsite reads, by the names of their harnesses. A `command` profile may name one
 * (`stream`) if its program prints the same. All of them report the commands that they ran.
 */
export const streams = {
  'claude-code': claudeCode.stream,
  cline: cline.stream,
  codex: codex.stream,
  copilot: copilot.stream,
  'gemini-cli': gemini.stream,
  opencode: opencode.stream,
  pi: pi.stream,
  'qwen-code': qwenCode.stream,
} as const satisfies Record<string, StreamReader>;
