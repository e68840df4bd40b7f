import { loadConfig } from '../../src/suite/load-config.ts';
import { loadSuite } from '../../src/suite/load-suite.ts';
import { folder, write } from '../each-folder.ts';
import { problemsOf } from './problems-of.ts';

/** The plan of this suite beside this configuration, in the folder of the test. */
export function load(suite: string, config = 'profiles:\n  p: { run: "true" }\n') {
  write('offsite.yaml', config);
  return loadSuite(write('suite.yaml', suite), loadConfig({ suiteFolder: folder, env: {} }), [
    {
      name: 'command',
      wires: [],
      continues: false,
      mcp: [],
      limits: [],
      runsScript: true,
      streams: [
        { name: 'codex', reportsCommands: true },
        { name: 'jsonl', reportsCommands: false },
      ],
    },
    { name: 'bash', wires: 'any', continues: false, mcp: [], limits: [] },
    {
      name: 'chat',
      wires: ['openai-chat'],
      continues: true,
      mcp: ['stdio', 'http'] as const,
      limits: ['turns'],
    },
  ]);
}

export const problems = (suite: string, config?: string) => problemsOf(() => load(suite, config)).split('\n');

export const model = 'models: { m: { wire: openai-chat, baseUrl: "http://127.0.0.1:1" } }\n';
export const variants = 'variants: [{ model: none, harness: command, profile: p }]\n';
