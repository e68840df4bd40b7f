import { gemini } from '../../runners/gemini-cli/runner.ts';
import { versions } from '../../runners/versions.ts';
import { packagePath } from '../../src/harness/npm-cli.ts';
import { conformance } from './conformance.ts';

const cli = versions['gemini-cli'];

conformance(gemini, {
  version: cli.version,
  garbage: { path: packagePath(cli, 'bundle/gemini.js'), program: 'console.log("Segmentation fault?");\n' },
});
