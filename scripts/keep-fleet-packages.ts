// Makes dependencies of the packages that `offsite fleet` needs, which are optional peers, so that `npm prune
// --omit=dev` keeps them. The Dockerfile runs it in its copy of the checkout.

import { readFile, writeFile } from 'node:fs/promises';

type Names = Record<string, string>;
const project: { devDependencies: Names } = JSON.parse(await readFile('package.json', 'utf8'));
const dependencies: Names = {};
for (const [name, range] of Object.entries(project.devDependencies)) {
  if (!/^@(temporalio|aws-sdk)\//.test(name)) continue;
  delete project.devDependencies[name];
  dependencies[name] = range;
}
await writeFile('package.json', JSON.stringify({ ...project, dependencies }, undefined, 2));
