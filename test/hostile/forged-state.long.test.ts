import { describe, expect, test } from 'vitest';
import { bench, sharedBench } from '../trial/shared-bench.ts';

/** Work that plants programs where programs may keep state and caches, for the later steps of verify. */

sharedBench();

const prepare = `echo wrong > result
echo 'import sys; sys.exit(open("result").read() != "right\\n")' > check.py`;

/** A result that names this change, made while verify ran the work. */
const failedFor = (path: string) => ({
  verdict: 'failed',
  validations: [{ kind: 'tampering', message: expect.stringContaining(path) }],
});

describe.concurrent('verify is not passed by', () => {
  test('a module of the user’s, beside state that verify itself keeps', async () => {
    const work = `import os, site; folder = site.getusersitepackages(); os.makedirs(folder, exist_ok=True)
open(folder + "/usercustomize.py", "w").write("import os; os._exit(0)")`;
    const result = await bench.trial(`cat > build.py << 'END'\n${work}\nEND`, {
      prepare: `${prepare}; touch build.py`,
      verify:
        'python3 build.py\nmkdir -p /root/.local/share/thing; date +%N > /root/.local/share/thing/db\npython3 check.py',
    });
    expect(result).toMatchObject(failedFor('usercustomize.py'));
  });

  test('python’s own modules, by bytecode where it is told to look for none', async () => {
    const work = `import importlib.util as util, json, os, py_compile
try:
    target = util.cache_from_source(json.__file__); os.makedirs(os.path.dirname(target), exist_ok=True)
    open('/tmp/evil.py', 'w').write('import os; os._exit(0)')
    py_compile.compile('/tmp/evil.py', target, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
except OSError as error: print(error)`;
    const given = {
      prepare: `${prepare}; touch build.py; sed -i 's/import sys/import json, sys/' check.py`,
      verify: 'python3 build.py\npython3 check.py',
    };
    expect(await bench.trial(`cat > build.py << 'END'\n${work}\nEND`, given)).toMatchObject({
      verdict: 'failed',
      verifySteps: [{ exitCode: 0 }, { exitCode: 1 }],
    });
  });

  test('a module of another user’s, beside state that verify itself keeps there', async () => {
    const work = `import os, site; folder = site.getusersitepackages(); os.makedirs(folder, exist_ok=True)
open(folder + "/usercustomize.py", "w").write("import os; os._exit(0)")`;
    const result = await bench.trial(`cat > build.py << 'END'\n${work}\nEND`, {
      prepare: `${prepare}; touch build.py; mkdir -p /home/worker`,
      verify: `export HOME=/home/worker
python3 build.py
mkdir -p ~/.npm; date +%N > ~/.npm/log
python3 check.py`,
    });
    expect(result).toMatchObject(failedFor('usercustomize.py'));
  });

  const tool = '/root/.cache/tool/run';
  const cached = {
    prepare: `${prepare}; touch build.sh; mkdir -p /root/.cache/tool
printf '#!/bin/sh\\ngrep -qx right result\\n' > ${tool}; chmod +x ${tool}`,
    verify: `sh build.sh\n${tool}`,
  };

  test('a program that the image keeps in a cache', async () => {
    const work = `echo "printf '#!/bin/sh\\\\n' > ${tool}" > build.sh`;
    expect(await bench.trial(work, cached)).toMatchObject(failedFor(tool));
  });

  test('a program that npx finds, beside logs that verify itself writes', async () => {
    const npx = '/root/.npm/_npx/1/node_modules/.bin/check';
    const work = `mkdir -p "$(dirname ${npx})"; ln -s /bin/true ${npx}`;
    const result = await bench.trial(`cat > build.sh << 'END'\n${work}\nEND`, {
      prepare: `${prepare}; touch build.sh`,
      verify: `sh build.sh\nmkdir -p /root/.npm/_logs; date +%N > /root/.npm/_logs/1\n${npx}`,
    });
    expect(result).toMatchObject(failedFor('_npx'));
  });

  test('(nothing is forged by work that adds to a cache)', async () => {
    const work = 'echo right > result; echo "echo 1 > /root/.cache/tool/more" > build.sh';
    expect(await bench.trial(work, cached)).toMatchObject({ verdict: 'passed' });
  });
});
