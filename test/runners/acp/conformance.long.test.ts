import { versions } from '../../../runners/versions.ts';
import { packagePath } from '../../../src/harness/npm-cli.ts';
import { conformance } from '../conformance.ts';
import { agents, withAgent } from './agents.ts';

// It finds the tools of servers with an address too late for its first answer.
conformance(
  { ...withAgent(agents['qwen-code']), mcp: ['stdio'] },
  {
    version: versions['qwen-code'].version,
    tellsUsage: false,
    garbage: {
      path: packagePath(versions['qwen-code'], 'cli.js'),
      program: 'console.log("Segmentation fault?");\n',
    },
  },
);
