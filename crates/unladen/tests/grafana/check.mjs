/* `node check.mjs DASHBOARD.json`: holds a dashboard against Grafana's own types, by way of the compiler: the JSON becomes literals of
   those types, in which a name that they do not know and a value that they do not allow are errors. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url)), work = mkdtempSync(join(here, 'check-'));
try {
  const { panels, ...board } = JSON.parse(readFileSync(process.argv[2], 'utf8')), written = value => JSON.stringify(value, null, 1);
  const constants = panels.map((panel, at) => `export const panel${at + 1}: Panels[${JSON.stringify(panel.type)}] = ${written(panel)};`);
  writeFileSync(join(work, 'dashboard.ts'), [`import type { Board, Panels } from '../types.ts';`, `export const board: Board = ${written(board)};`, ...constants, ''].join('\n'));
  writeFileSync(join(work, 'tsconfig.json'), JSON.stringify({ compilerOptions: { strict: true, noEmit: true, allowImportingTsExtensions: true, skipLibCheck: true, module: 'esnext', moduleResolution: 'bundler', target: 'es2022', types: [] }, files: ['dashboard.ts'] }));
  const { status, stdout, stderr, error } = spawnSync(process.execPath, [join(here, 'node_modules/typescript/bin/tsc'), '--project', work, '--pretty', 'false'], { encoding: 'utf8' });
  process.stdout.write(stdout ?? '');
  process.stderr.write(stderr ?? String(error ?? ''));
  process.exitCode = status ?? 2;
} finally {
  rmSync(work, { recursive: true });
}
