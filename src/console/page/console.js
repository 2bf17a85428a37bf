const show = async () => {
  const answer = await fetch("/api/tree.txt");
  document.getElementById("tree").textContent = await answer.text();
};
new EventSource("/api/stream").addEventListener("change", show);
show();
