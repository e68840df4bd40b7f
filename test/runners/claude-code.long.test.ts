import { claudeCode } from '../../runners/claude-code/runner.ts';
import { versions } from '../../runners/versions.ts';
import { programPath } from '../../src/harness/npm-cli.ts';
import { conformance } from './conformance.ts';

conformance(claudeCode, {
  version: versions['claude-code'].version,
  garbage: { path: programPath(versions['claude-code']), program: '#!/bin/sh\necho "Segmentation fault?"\n' },
});
