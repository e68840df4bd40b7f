import { qwenCode } from '../../runners/qwen-code/runner.ts';
import { versions } from '../../runners/versions.ts';
import { packagePath } from '../../src/harness/npm-cli.ts';
import { conformance } from './conformance.ts';

const cli = versions['qwen-code'];

conformance(qwenCode, {
  version: cli.version,
  garbage: { path: packagePath(cli, 'cli.js'), program: 'console.log("Segmentation fault?");\n' },
});
