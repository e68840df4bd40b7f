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

/** All harnesses of Offsite. To add one, add a folder here and a line to this list. */
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
