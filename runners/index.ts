import type { Runner } from '../src/harness/runner.ts';
import { bash } from './bash/runner.ts';
import { claudeCode } from './claude-code/runner.ts';
import { codex } from './codex/runner.ts';
import { command } from './command/runner.ts';
import { opencode } from './opencode/runner.ts';
import { pi } from './pi/runner.ts';
import { qwenCode } from './qwen-code/runner.ts';

/** Every harness this Offsite has. A new one is a folder here and a line in this list. */
export const runners: readonly Runner[] = [command, bash, claudeCode, codex, opencode, pi, qwenCode];
