import { cline } from '../../runners/cline/runner.ts';
import { versions } from '../../runners/versions.ts';
import { programPath } from '../../src/harness/npm-cli.ts';
import { conformance } from './conformance.ts';

conformance(cline, {
  version: versions.cline.version,
  garbage: { path: programPath(versions.cline), program: '#!/bin/sh\necho "Segmentation fault?"\n' },
});
