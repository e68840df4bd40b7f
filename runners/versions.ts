import type { NpmCli } from '../src/harness/npm-cli.ts';
import type { PythonCli } from '../src/harness/python-cli.ts';

/**
 * The CLIs' packages, at the versions whose streams were recorded for the tests. To raise a version, record
 * its streams again: see runners/index.ts. A profile's `version` overrides these.
 */
export const versions = {
  'claude-code': {
    package: '@anthropic-ai/claude-code',
    version: '2.1.330',
    program: 'claude',
    // Replaces a stub by the platform's binary.
    script: 'install.cjs',
  },
  cline: { package: 'cline', version: '3.0.65', program: 'cline' },
  codex: { package: '@openai/codex', version: '0.169.0', program: 'codex' },
  copilot: { package: '@github/copilot', version: '1.0.102', program: 'copilot' },
  'gemini-cli': { package: '@google/gemini-cli', version: '0.61.0', program: 'gemini' },
  kimi: { package: '@moonshot-ai/kimi-code', version: '2.1.0', program: 'kimi' },
  opencode: {
    package: 'opencode-ai',
    version: '1.18.33',
    program: 'opencode',
    script: 'postinstall.mjs',
  },
  pi: { package: '@earendil-works/pi-coding-agent', version: '0.87.1', program: 'pi' },
  'qwen-code': { package: '@qwen-code/qwen-code', version: '0.24.4', program: 'qwen' },
} as const satisfies Record<string, NpmCli>;

/**
 * The same for the CLIs from PyPI. To raise a version, also lock its packages again:
 * `node scripts/lock-python.ts <name>`.
 */
export const pythonVersions = {
  'mini-swe-agent': {
    package: 'mini-swe-agent',
    version: '2.4.6',
    program: 'mini',
    debian: 'bookworm',
    lock: new URL('./mini-swe-agent/requirements.txt', import.meta.url),
    // LiteLLM imports it.
    also: ['mcp'],
    // Only its benchmarks use them. They are half a gigabyte.
    without: ['datasets'],
  },
  aider: {
    package: 'aider-chat',
    version: '0.86.2',
    program: 'aider',
    debian: 'bookworm',
    lock: new URL('./aider/requirements.txt', import.meta.url),
  },
  openhands: {
    package: 'openhands',
    version: '1.16.0',
    program: 'openhands',
    // It says that it wants 3.12, which no release of Debian has.
    debian: 'trixie',
    lock: new URL('./openhands/requirements.txt', import.meta.url),
    built: ['func-timeout'],
    // Builds it.
    also: ['setuptools'],
  },
} as const satisfies Record<string, PythonCli>;
