import { opencode } from '../../runners/opencode/runner.ts';
import { versions } from '../../runners/versions.ts';
import { programPath } from '../../src/harness/npm-cli.ts';
import { conformance } from './conformance.ts';

conformance(opencode, {
  version: versions.opencode.version,
  garbage: { path: programPath(versions.opencode), program: '#!/bin/sh\necho "Segmentation fault?"\n' },
});
