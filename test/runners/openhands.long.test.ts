import { openhands } from '../../runners/openhands/runner.ts';
import { pythonVersions } from '../../runners/versions.ts';
import { harnessPython } from '../../src/harness/python-cli.ts';
import { conformance } from './conformance.ts';

conformance(openhands, {
  version: pythonVersions.openhands.version,
  garbage: { path: harnessPython, program: '#!/bin/sh\necho "Segmentation fault?"\n' },
  shell: 'terminal',
});
