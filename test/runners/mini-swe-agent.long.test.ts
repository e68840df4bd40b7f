import { miniSweAgent } from '../../runners/mini-swe-agent/runner.ts';
import { pythonVersions } from '../../runners/versions.ts';
import { harnessPython } from '../../src/harness/python-cli.ts';
import { conformance } from './conformance.ts';

conformance(miniSweAgent, {
  version: pythonVersions['mini-swe-agent'].version,
  garbage: { path: harnessPython, program: '#!/bin/sh\necho "Segmentation fault?"\n' },
  shell: 'sh',
});
